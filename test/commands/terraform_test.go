package commands_test

import (
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/poll"
)

// configuration needs no provider that Terraform would download.
const configuration = `resource "terraform_data" "deployment" {
  triggers_replace = timestamp()
  provisioner "local-exec" {
    command = file("${path.module}/deploy.sh")
  }
}
`

// terraform is the recipe of docs/how-to/ci.md for a deployment that runs the script. Without a
// lock of its own, Terraform would apply two at once.
func (u *user) terraform(ttl time.Duration, script string) *process {
	u.t.Helper()
	for name, text := range map[string]string{"main.tf": configuration, "deploy.sh": script} {
		if err := os.WriteFile(u.path(name), []byte(text), 0o600); err != nil {
			u.t.Fatal(err)
		}
	}
	p := u.command("run", "--wait", "5m", "--ttl", ttl.String(), "tf:prod", "--",
		"terraform", "apply", "-auto-approve", "-input=false", "-lock=false", "-state=../state")
	p.Env = append(p.Env, "TF_CLI_CONFIG_FILE=/dev/null", "CHECKPOINT_DISABLE=1")
	return p
}

// folders are two checkouts of one configuration, which share the state and a log.
func folders(t *testing.T) (first, second *user) {
	t.Helper()
	r, token := server(t)
	shared := userOf(t, r.URL(), token)
	all := make([]*user, 2)
	for i, name := range []string{"first", "second"} {
		all[i] = &user{t: t, env: shared.env, dir: shared.path(name)}
		if err := os.Mkdir(all[i].dir, 0o750); err != nil {
			t.Fatal(err)
		}
	}
	return all[0], all[1]
}

func TestTerraformAppliesOneAtATime(t *testing.T) {
	t.Parallel()
	first, second := folders(t)
	const script = "echo begin >>../log; sleep 0.5; echo end >>../log"
	a, b := first.terraform(patient, script).start(), second.terraform(patient, script).start()
	if code, other := a.code(), b.code(); code != 0 || other != 0 {
		t.Fatalf("%d and %d: %s%s%s%s", code, other, &a.stdout, &a.stderr, &b.stdout, &b.stderr)
	}
	if log := first.lines("../log"); !slices.Equal(log, []string{"begin", "end", "begin", "end"}) {
		t.Errorf("the deployments are %q", log)
	}
}

// TestTerraformEndsBeforeTheNextApply: when the process that renews is killed or stopped,
// Terraform and what it started are dead before another apply begins.
func TestTerraformEndsBeforeTheNextApply(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]syscall.Signal{
		"killed": syscall.SIGKILL, "stopped": syscall.SIGSTOP,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, second := folders(t)
			holder := first.terraform(lease,
				"trap '' TERM; while :; do echo beat >>../log; sleep 0.02; done")
			holder.Stdout, holder.Stderr = nil, nil // which Terraform could keep open
			holder.start()
			poll.Until(t, "the first deployment", func() bool { return len(first.lines("../log")) > 5 })
			waiter := second.terraform(lease, "echo granted >>../log; sleep 0.5").start()
			holder.signal(signal)
			(&user{t, first.env, first.path("..")}).alone(waiter)
		})
	}
}
