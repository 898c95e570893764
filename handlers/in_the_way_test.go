package handlers_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fencepost/fencepost/api"
)

// busy is a refusal as its client reads it: what is not there is nil.
type busy struct {
	Code    string          `json:"code"`
	Holders []api.Holder    `json:"holders"`
	Waiting *int            `json:"waiting"`
	Locks   *[]api.BusyLock `json:"locks"`
}

func (b *busy) holders() (all []string) {
	for _, h := range b.Holders {
		all = append(all, h.Holder)
	}
	return all
}

// TestRefusalShowsNoHolderIfAllWait: a refusal shows no holder of a lock that only has waiters.
func TestRefusalShowsNoHolderIfAllWait(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	c.acquire("b")
	c.post("/locksets", body(`{"locks":[{"name":"a"},{"name":"b"}],"async":true,"wait_seconds":60}`)).
		wantStatus(http.StatusAccepted)
	for what, a := range map[string]struct {
		path, text, code string
		waiting          int
	}{
		"others wait":          {"/locks/a", `{}`, "lock_held", 1},
		"others wait for long": {"/locks/a", `{"wait_seconds":0.3}`, "wait_timeout", 1},
	} {
		t.Run(what, func(t *testing.T) {
			var text map[string]json.RawMessage
			got := c.post(a.path, body(a.text))
			if err := json.Unmarshal(got.body, &text); err != nil || got.status != http.StatusLocked {
				t.Errorf("%v", got)
			}
			if string(text["holders"]) != "[]" || string(text["code"]) != `"`+a.code+`"` ||
				string(text["waiting"]) != strconv.Itoa(a.waiting) {
				t.Errorf("%s", got.body)
			}
		})
	}
}

// TestSetIsRefusedAsOneLock: the refusal of a set lists the holders as that of a lock does, next
// to those of each lock. The holder of several locks is listed once.
func TestSetIsRefusedAsOneLock(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	c.post("/locksets", body(`{"locks":[{"name":"a"},{"name":"b"}],"holder":"both"}`)).
		wantStatus(http.StatusCreated)
	c.post("/locks/c", body(`{"holder":"one","metadata":{"k":"v"}}`)).wantStatus(http.StatusCreated)
	c.post("/locks/c", body(`{"async":true,"wait_seconds":60}`)).wantStatus(http.StatusAccepted)
	c.post("/locksets", body(`{"locks":[{"name":"b"},{"name":"c"}],"async":true,"wait_seconds":60}`)).
		wantStatus(http.StatusAccepted)
	var got busy
	a := c.post(
		"/locksets", body(`{"locks":[{"name":"a"},{"name":"b"},{"name":"c"},{"name":"free"}]}`),
	)
	if err := json.Unmarshal(a.body, &got); err != nil || a.status != http.StatusLocked {
		t.Errorf("%v", a)
	}
	if diff := cmp.Diff([]string{"both", "one"}, got.holders()); diff != "" ||
		got.Code != "lock_held" {
		t.Errorf("%s: holders (-want +got):\n%s", got.Code, diff)
	}
	if got.Waiting == nil || *got.Waiting != 3 || got.Locks == nil || len(*got.Locks) != 3 {
		t.Errorf("%+v", got)
	}
	for _, h := range got.Holders {
		if h.Fence == 0 || h.Metadata != nil {
			t.Errorf("%+v", h)
		}
	}
}
