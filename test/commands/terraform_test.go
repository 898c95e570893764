package commands_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fencepost/fencepost/test/poll"
	"github.com/fencepost/fencepost/test/rig"
)

// configuration needs no provider that Terraform would download.
const configuration = `terraform {
  backend "http" {}
}
resource "terraform_data" "deployment" {
  triggers_replace = timestamp()
  provisioner "local-exec" {
    command = file("${path.module}/deploy.sh")
  }
}
`

// terraform is a deployment that runs the script, with its state next to the folder.
func (u *user) terraform(ttl time.Duration, script string, flags ...string) *process {
	u.t.Helper()
	for name, text := range map[string]string{"main.tf": configuration, "deploy.sh": script} {
		if err := os.WriteFile(u.path(name), []byte(text), 0o600); err != nil {
			u.t.Fatal(err)
		}
	}
	u.env = append(u.env, "TF_CLI_CONFIG_FILE=/dev/null", "CHECKPOINT_DISABLE=1")
	backend := slices.Concat([]string{"terraform-backend"}, flags, []string{
		"--state", "file:../state", "--wait", "5m", "--ttl", ttl.String(), "tf:prod", "--", "terraform",
	})
	u.command(slices.Concat(backend, []string{"init", "-input=false"})...).expect(0)
	return u.command(slices.Concat(backend, []string{"apply", "-auto-approve", "-input=false"})...)
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

// TestTerraformCannotOverwriteTheNextState: all processes of an apply are stopped past the lease,
// another apply writes the state, and the first continues. Its state is refused, also if nothing
// kills it.
func TestTerraformCannotOverwriteTheNextState(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string][]string{"guarded": nil, "not-killed": {"--no-kill"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, second := folders(t)
			holder := first.terraform(lease,
				"touch ../applies; while [ ! -e ../over ]; do sleep 0.02; done", flags...)
			holder.start()
			poll.Until(t, "the first apply", func() bool { return first.exists("../applies") })
			family := familyOf(t, holder.Process.Pid)
			each(family, syscall.SIGSTOP)
			second.terraform(lease, "true").expect(0)
			want := second.lines("../state")
			first.touch("../over")
			each(family, syscall.SIGCONT)
			if code := holder.code(); code != 76 {
				t.Errorf("it ends with %d: %s", code, &holder.stderr)
			}
			if got := second.lines("../state"); !slices.Equal(got, want) {
				t.Errorf("the next state was overwritten by %q", got)
			}
			if refused := strings.Contains(holder.stderr.String(), "was not written"); flags != nil &&
				!(refused && first.exists("errored.tfstate")) {
				t.Errorf("Terraform has not kept its state: %s", &holder.stderr)
			}
		})
	}
}

// TestTerraformKeepsItsState: when the lock cannot be renewed, or is revoked, Terraform writes the
// state of what it has begun before it is killed.
func TestTerraformKeepsItsState(t *testing.T) {
	t.Parallel()
	t.Run("not renewed", func(t *testing.T) {
		t.Parallel()
		keepsItsState(t, func(r *rig.Replica, _ *user) error { return r.Stop() })
	})
	t.Run("revoked", func(t *testing.T) {
		t.Parallel()
		keepsItsState(t, func(_ *rig.Replica, u *user) error {
			u.command("revoke", "--yes", "--reason", "an operator takes it", "tf:prod").expect(0)
			return nil
		})
	})
}

func keepsItsState(t *testing.T, lose func(*rig.Replica, *user) error) {
	t.Helper()
	r, token := server(t)
	u := userOf(t, r.URL(), token)
	if err := os.Mkdir(u.path("checkout"), 0o750); err != nil {
		t.Fatal(err)
	}
	u.dir = u.path("checkout")
	p := u.terraform(30*time.Second, "touch applies; exec sleep 600").start()
	poll.Until(t, "the apply", func() bool { return u.exists("applies") })
	if err := lose(r, u); err != nil {
		t.Fatal(err)
	}
	if code := p.code(); code != 76 {
		t.Errorf("it ends with %d: %s%s", code, &p.stdout, &p.stderr)
	}
	if state := strings.Join(u.lines("../state"), " "); !strings.Contains(state, `"status": "tainted"`) {
		t.Errorf("the state is %s: %s", state, &p.stderr)
	}
}

// TestTerraformPage: the configuration and the commands of the page make a state.
func TestTerraformPage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/how-to/terraform-state.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(text), "```")
	u := newUser(t)
	hcl, script := strings.TrimPrefix(blocks[1], "hcl"), strings.TrimPrefix(blocks[3], "sh")
	script = strings.ReplaceAll(script, "/srv/", u.dir+"/")
	if err := os.WriteFile(u.path("main.tf"), []byte(hcl), 0o600); err != nil {
		t.Fatal(err)
	}
	u.env = append(u.env, "TF_CLI_CONFIG_FILE=/dev/null", "CHECKPOINT_DISABLE=1")
	u.env = append(u.env, "PATH="+filepath.Dir(programs.fencepost)+":"+os.Getenv("PATH"))
	u.program("sh", "-e", "-c", script).expect(0)
	if !u.exists("prod.tfstate") || !u.exists("prod.tfstate.fence") {
		t.Error("there is no state")
	}
}
