package handlers

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/service"
	"github.com/fencepost/fencepost/service/view"
)

// TestRefusalOfASetFits: a refusal of a set takes no more memory than is counted for it, and that
// is bounded, however many hold its locks: the answer lists each holder twice.
func TestRefusalOfASetFits(t *testing.T) {
	for _, holders := range []int{1, 50, 1000} {
		g := &service.Grant{Entry: &lock.Entry{Set: true}}
		for n := range 4 {
			b := service.Busy{Name: fmt.Sprint("lock-", n)}
			for i := range holders {
				b.Holders = append(b.Holders, view.Holder{Entry: &lock.Entry{
					ID: lock.ID(fmt.Sprint(n, "-", i)), Number: 1 << 50, Holder: strings.Repeat(`"`, 200),
					Claims: []lock.Claim{{Name: b.Name, Mode: lock.Shared}},
				}})
			}
			g.Busy = append(g.Busy, b)
		}
		var p api.Problem
		size := fitRefusal(g)
		describeBusy(&p, g)
		text, err := json.Marshal(&p)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > size || size > maxRefusalBytes+10*rowBytes {
			t.Errorf("of 4 times %d holders: %d bytes, for which %d are counted", holders, len(text), size)
		}
		if n := len(p.Holders); n < min(4*holders, 100) {
			t.Errorf("of 4 times %d holders %d are told", holders, n)
		}
	}
}
