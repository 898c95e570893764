package zookeeper

import (
	"context"
	"encoding/json"
	"errors"
)

// foldMark names the last folded record of a log.
type foldMark struct {
	Epoch int32 `json:"epoch"`
	N     int32 `json:"record"`
	Zxid  int64 `json:"zxid"`
}

// lastFolded reads which record was folded last; its log is none if that is unknown.
func (j *journal) lastFolded(ctx context.Context, l *link) (mark foldMark, err error) {
	n, err := do(ctx, l, get(j.root.logs()))
	if err == nil && json.Unmarshal(n.data, &mark) != nil {
		mark = foldMark{Epoch: -1}
	}
	return mark, err
}

// lastBefore reads the record before another one, without its changes if it was folded. It is nil
// if there is none, or if it is unknown.
func (j *journal) lastBefore(ctx context.Context, l *link, epoch, n int32) (*written, error) {
	if n == 0 {
		return nil, nil //nolint:nilnil // as it says
	}
	last, err := j.readRecord(ctx, l, epoch, n-1)
	switch {
	case err == nil:
		return &last, nil
	case !answered(err) && !errors.Is(err, errDamaged):
		return nil, err
	}
	mark, err := j.lastFolded(ctx, l)
	if err != nil || mark.Epoch != epoch || mark.N != n-1 {
		return nil, err
	}
	return &written{n: mark.N, zxid: mark.Zxid}, nil
}
