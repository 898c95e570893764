package store_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/test/bubble"
)

// trustAt returns a trust in a store of cluster 7 with a floor of 1000 at position 50.
func trustAt(t *testing.T) *store.Trust {
	t.Helper()
	trust := store.NewTrust()
	judge(t, trust, records(50))
	return trust
}

func records(position uint64) store.Records {
	return store.Records{Position: position, Cluster: 7, Kept: 7, Floor: 1000, Form: store.Form}
}

func judge(t *testing.T, trust *store.Trust, r store.Records) (lost uint64) {
	t.Helper()
	lost, err := trust.Reread(
		t.Context(), 0, func(context.Context) (store.Records, error) { return r, nil },
	)
	if err != nil {
		t.Fatal(err)
	}
	return lost
}

func TestTrustAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		answers func(*store.Trust)
		refuses bool
	}{
		"numbers that grow": {func(trust *store.Trust) {
			trust.Received(trust.Sent(), 51, 7)
			trust.Received(trust.Sent(), 51, 7)
		}, false},
		"answers that overtake each other": {func(trust *store.Trust) {
			first, second := trust.Sent(), trust.Sent()
			trust.Received(second, 60, 7)
			trust.Received(first, 59, 7)
		}, false},
		"a lower answer to a later call": {func(trust *store.Trust) {
			trust.Received(trust.Sent(), 60, 7)
			trust.Received(trust.Sent(), 59, 7)
		}, true},
		"a lower answer after an event": {func(trust *store.Trust) {
			trust.Saw(60)
			trust.Received(trust.Sent(), 59, 7)
		}, true},
		"events of a member that is behind": {func(trust *store.Trust) {
			trust.Received(trust.Sent(), 60, 7)
			trust.Saw(40)
			trust.Received(trust.Sent(), 60, 7)
		}, false},
		"another cluster": {func(trust *store.Trust) { trust.Received(trust.Sent(), 60, 8) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			trust := trustAt(t)
			c.answers(trust)
			if got := trust.Refusal() != nil; got != c.refuses {
				t.Errorf("refuses: %v, want %v (%v)", got, c.refuses, trust.Refusal())
			}
		})
	}
}

func TestTrustReadsAnew(t *testing.T) {
	higher, restored, known := records(60), records(60), records(40)
	higher.Floor, restored.Cluster, known.Distrust = 2000, 8, 1060
	higher.Position = 10
	lowered := records(61)
	lowered.Floor = 999
	for name, c := range map[string]struct {
		found   store.Records
		want    uint64
		refuses string
		floor   uint64
	}{
		"it was a mistake":                  {records(60), 0, "", 1000},
		"another replica was given a floor": {higher, 0, "", 2000},
		"the past is lost":                  {records(59), 1060, "lost its past: fence 1060", 1000},
		"that is recorded already":          {known, 0, "lost its past: fence 1060", 1000},
		"the cluster is another one":        {restored, 0, "cluster id", 1000},
		"the floor went down":               {lowered, 0, "lowered from 1000 to 999", 1000},
	} {
		t.Run(name, func(t *testing.T) {
			trust := trustAt(t)
			trust.Saw(60)
			trust.Received(trust.Sent(), 59, 7)
			if got := judge(t, trust, c.found); got != c.want {
				t.Errorf("verdict %+v, want %+v", got, c.want)
			}
			switch why := trust.Refusal(); {
			case why == nil && c.refuses != "", why != nil &&
				(c.refuses == "" || !strings.Contains(why.Detail, c.refuses)):
				t.Errorf("the refusal is %v, want %q", why, c.refuses)
			}
			if got := trust.Floor(); got != c.floor {
				t.Errorf("floor %d, want %d", got, c.floor)
			}
		})
	}
}

// Writes are compared with records only when their floor is added and their distrust is
// heeded: what is written then is handed out at once.
func TestTrustTakesOverFirst(t *testing.T) {
	trust, r, kept := trustAt(t), records(60), false
	r.Floor, r.Distrust = 2000, 3000
	r.Keep = func() {
		if kept = true; trust.Floor() != 2000 || trust.Refusal() == nil {
			t.Errorf("the floor is %d and grants are refused: %v", trust.Floor(), trust.Refusal())
		}
	}
	if judge(t, trust, r); !kept {
		t.Error("the records are not kept")
	}
}

// A lost past whose record could not be written is checked again, without another doubt.
func TestTrustLooksUntilItIsRecorded(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		trust := trustAt(t)
		trust.Saw(60)
		if v := judge(t, trust, records(59)); v != 1060 {
			t.Fatalf("verdict %+v", v)
		}
		looked := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go trust.Attend(ctx, func(context.Context) error { close(looked); return nil })
		synctest.Wait()
		select {
		case <-looked:
		default:
			t.Error("nobody looks")
		}
	})
}

// A proof that comes while the records are read is not taken back by what is read.
func TestTrustDoubtWhileReading(t *testing.T) {
	trust := trustAt(t)
	_, err := trust.Reread(t.Context(), 0, func(context.Context) (store.Records, error) {
		trust.Saw(90)
		trust.Received(trust.Sent(), 80, 7)
		return records(70), nil
	})
	if err != nil || trust.Refusal() == nil {
		t.Errorf("refuses: %v, %v; want a refusal", trust.Refusal(), err)
	}
}

// A doubt is looked into until that succeeds.
func TestTrustAttends(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		trust := trustAt(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		looks, done := 0, make(chan struct{})
		go trust.Attend(ctx, func(context.Context) error {
			if looks++; looks < 3 {
				return errors.New("no answer")
			}
			close(done)
			return nil
		})
		synctest.Wait()
		if looks != 0 {
			t.Errorf("%d looks without a doubt", looks)
		}
		trust.Saw(60)
		trust.Received(trust.Sent(), 59, 7)
		<-done
	})
}

func TestFloors(t *testing.T) {
	r := store.Records{Position: 100, Floor: 1000, Distrust: 5000}
	const limit = 1<<53 - 1<<51
	for floor, want := range map[uint64]string{
		0: "", 1000: "", 999: "below 1000", 4900: "too low", 4901: "raises",
		limit - 100: "raises", limit - 99: "too high", limit: "too high", 1 << 53: "too high",
		math.MaxUint64: "too high", math.MaxUint64 - 99: "too high",
	} {
		raises, err := r.Raises(floor)
		switch {
		case want == "raises" && (err != nil || !raises), want == "" && (err != nil || raises):
			t.Errorf("floor %d: %v, %v, want %q", floor, raises, err, want)
		case want != "" && want != "raises" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("floor %d: %v, want an error with %q", floor, err, want)
		}
	}
}

// TestLowFloorIsTold: the log reports a floor below the numbers that the store has issued, with
// both. What a restore alone adds to positions was not issued.
func TestLowFloorIsTold(t *testing.T) {
	const jump = 1000
	for name, c := range map[string]struct {
		r     store.Records
		floor uint64
		want  []string // in the log; none is nothing
	}{
		"above all": {r: store.Records{Position: 100}, floor: 100},
		"below": {
			r: store.Records{Position: 100}, floor: 99,
			want: []string{"level=WARN", "floor=99", "newest=100", "next=200"},
		},
		"below, with a floor": {
			r: store.Records{Position: 100, Floor: 5000}, floor: 5099,
			want: []string{"floor=5099", "newest=5100", "next=5200"},
		},
		"above all of a restore": {r: store.Records{Position: jump + 100, Floor: 5000}, floor: 5100},
		"below, of a restore": {
			r: store.Records{Position: jump + 100, Floor: 5000}, floor: 5099,
			want: []string{"newest=5100", "next=6200"},
		},
		"below what was lost": {
			r: store.Records{Position: 100, Distrust: 5000}, floor: 4999, want: []string{"newest=5000"},
		},
	} {
		var log bytes.Buffer
		c.r.TellLow(slog.New(slog.NewTextHandler(&log, nil)), c.floor, jump)
		if (len(c.want) == 0) != (log.Len() == 0) {
			t.Errorf("%s: it is said %q", name, log.String())
		}
		for _, want := range c.want {
			if !strings.Contains(log.String(), want) {
				t.Errorf("%s: it is said %q, want %q in it", name, log.String(), want)
			}
		}
	}
}

// A number that a token carries is held against what is read, not against answers
// that a floor is still to be added to.
func TestTrustIsTold(t *testing.T) {
	trust := trustAt(t)
	read := func(r store.Records) func(context.Context) (store.Records, error) {
		return func(context.Context) (store.Records, error) { return r, nil }
	}
	higher := records(51)
	higher.Floor = 2000
	if v, err := trust.Reread(
		t.Context(), 2051, read(higher),
	); err != nil || v != 0 || trust.Refusal() != nil {
		t.Errorf(
			"a floor that this replica did not know yet: %+v, %v, refuses %v", v, err, trust.Refusal(),
		)
	}
	if v, err := trust.Reread(
		t.Context(), 2053, read(higher),
	); err != nil || v != 2053 || trust.Refusal() == nil {
		t.Errorf("a number that the store has not reached: %+v, %v, refuses %v", v, err, trust.Refusal())
	}
	if v, err := trust.Reread(
		t.Context(), 0, read(higher),
	); err != nil || v != 2053 || trust.Refusal() == nil {
		t.Errorf("the same as long as it is not recorded: %+v, %v, refuses %v", v, err, trust.Refusal())
	}
}

// TestTrustInAForm: a replica grants nothing in a store of another form, whichever it is, and
// grants again when the store has its own form.
func TestTrustInAForm(t *testing.T) {
	trust := trustAt(t)
	for form, want := range map[int]error{
		0: store.ErrOlderForm, store.Form - 1: store.ErrOlderForm, store.Form + 1: store.ErrNewerForm,
	} {
		r := records(50)
		r.Form = form
		judge(t, trust, r)
		refusal := trust.Refusal()
		if refusal == nil || !errors.Is(refusal, want) {
			t.Errorf("form %d: it refuses with %v, want %v", form, refusal, want)
			continue
		}
		if asks := strings.Contains(refusal.Error(), "--fence-floor"); asks != (form < store.Form) {
			t.Errorf("form %d: %v", form, refusal)
		}
		if judge(t, trust, records(50)); trust.Refusal() != nil {
			t.Errorf("after form %d: it refuses its own form: %v", form, trust.Refusal())
		}
	}
}
