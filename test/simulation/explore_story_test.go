package simulation

import (
	"fmt"
	"strings"
	"time"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/store/memory"
)

// deviated tells a deviation.
func (x *explorer) deviated(format string, args ...any) { x.line("→ "+format, args...) }

func (x *explorer) line(format string, args ...any) {
	if x.tells {
		at := x.w.now().Round(time.Millisecond)
		text := fmt.Sprintf("%3d. %8v  ", len(x.lines)+1, at) + fmt.Sprintf(format, args...)
		x.lines = append(x.lines, text)
	}
}

// wrong ends the story.
func (x *explorer) wrong(what string) {
	if x != nil {
		x.line("That is wrong: %s", what)
		x.tells = false
	}
}

// deviates tells what is different about a request.
func (x *explorer) deviates(what string, m *message) {
	if what == "" || !x.tells {
		return
	}
	text := map[string]string{
		behind: "waits until another has written", passed: "waits until another has read",
		noReply: "gets no answer", slow: "gets its answer only after the next news",
		joins:   "waits to share a transaction",
		lateNow: "arrives just after its caller has given up",
		late1:   "arrives after its caller has given up, and after one more request about the entry",
		late2:   "arrives after its caller has given up, and after two more requests about the entry",
		lateOff: "arrives after its client has hung up, and after one more request about the entry",
		lostOff: "gets no answer, and its client hangs up",
		lateEnd: "arrives ten seconds late", crashBefore: "is lost: the replica crashes",
		crashAfter: "is its last: the replica crashes when it is carried out",
		still:      "arrives late: the replica stands still for " + stillFor.String(),
		gap:        "is carried out, and the replica's feed begins again, with a list",
		leave:      "is carried out, and its client hangs up",
		closing:    "arrives just after an operator has closed the lock",
		restoring:  "is lost: the store goes back to a copy",
		draining:   "is carried out, and the replica begins to shut down",
		mute:       "is carried out, and later renewals of its shard's lock are lost",
	}[what]
	x.deviated("%s %s", x.request(m.wire.r.n, string(m.op), m.id), text)
}

func (x *explorer) request(replica int, op string, id lock.ID) string {
	return fmt.Sprintf("replica %d's %s of %s", replica, op, x.entry(id))
}

// entry names an entry by its client.
func (x *explorer) entry(id lock.ID) string {
	if c := x.w.truth.writer[id]; c != nil {
		return letter(c.client) + "'s entry"
	}
	return string(id)
}

func letter(c *client) string {
	if c.n < 0 {
		return "a probe"
	}
	return "client " + string(rune('A'+c.n))
}

// noted tells a step of the log, if a reader wants to know it.
func (x *explorer) noted(what string, d []any) {
	if x == nil || !x.tells {
		return
	}
	switch what {
	case "call":
		k := x.w.truth.calls[d[0].(int)]
		x.line("%s asks replica %d: %s", letter(k.client), k.replica.n, k.wish())
	case "answered":
		k := x.w.truth.calls[d[0].(int)]
		x.line("%s gets its answer to %s: %s", letter(k.client), k.kind, k.result())
	case "disconnect":
		x.line("%s hangs up", letter(x.w.truth.calls[d[0].(int)].client))
	case "done":
		x.done(d)
	case "expired":
		x.line("the lease of %s ends", x.entry(d[0].(lock.ID)))
	case "restore":
		x.line("the store goes back from %d to %d", d[1], d[0])
	case "floor":
		x.line("an operator restarts a replica with the fence floor %d", d[0])
	case "close", "open":
		x.line("an operator: %s %s", what, d[0])
	case "attempt":
		x.line("replica %d sends %s to %s", d[0], d[2], d[1])
	case "receive":
		x.line("the receiver gets %s: %s", d[2], d[3])
	case "heal":
		x.line("nothing fails any more")
	}
}

// done tells what the store has done.
func (x *explorer) done(d []any) {
	op, number := d[1].(string), d[3]
	text := x.request(d[0].(int), op, d[2].(lock.ID))
	switch memory.Operation(op) {
	case memory.RenewLife, memory.ListDir, memory.Newest, memory.Look, memory.Renew:
		return // there are many
	case memory.List:
		text = fmt.Sprintf("replica %d's list", d[0])
	}
	how := fmt.Sprintf("is carried out, at %d", number)
	if ok := d[4].(bool); !ok {
		how = "is refused"
	}
	x.line("%s %s", text, how)
}

// wish is what a call asks for, in words.
func (k *call) wish() string {
	var names []string
	for _, c := range k.claims {
		name := c.Name + " " + string(c.Mode)
		if c.Limit > 0 {
			name += fmt.Sprintf(" %d of %d", c.Permits, c.Limit)
		}
		names = append(names, name)
	}
	text := fmt.Sprintf("%s %s", k.kind, strings.Join(names, " and "))
	if k.kind != acquire {
		return text
	}
	r := k.asked.req
	if r.Any > 0 {
		text += fmt.Sprintf(", %d of them", r.Any)
	}
	if r.Wait > 0 {
		text += ", waits"
	}
	if r.IdempotencyKey != "" {
		text += ", with the key " + r.IdempotencyKey
	}
	return text
}

// result is the answer to a call, in words.
func (k *call) result() string {
	switch g := k.grant; {
	case k.err != nil:
		return outcome(k)
	case g == nil:
		return "done"
	case g.Held:
		return fmt.Sprintf("granted, with the fence %d", g.Entry.Number)
	default:
		return fmt.Sprintf("waits, at %d", g.Entry.Number)
	}
}

// story is what happened, up to the first problem.
func (x *explorer) story() string { return strings.Join(x.lines, "\n") }
