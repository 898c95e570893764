package cli

import (
	"context"
	"os"
	"os/signal"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fencepost/fencepost/cmd/fencepost/internal/child"
	"github.com/fencepost/fencepost/cmd/fencepost/tfstate"
)

const terraformHelp = `Run Terraform or OpenTofu with its state behind a lock.

fencepost serves the HTTP backend to the command, on the loopback interface and
with a password of its own. The configuration needs

  terraform {
    backend "http" {}
  }

When Terraform locks the state, it queues for the lock NAME as --wait says. The
lock is renewed until Terraform unlocks the state. If it is lost, the command
ends as under fencepost run, but after a revocation gets SIGTERM first, to write
its state or errored.tfstate. The state refuses the writes of a command whose
lock another one has taken since.

It exits with the code of its command, also if that did not get the lock; with
64 if an argument is not valid, 76 if the lock was lost, 124 if --timeout passed.

Use the same NAME for a state everywhere.`

func (a *app) terraformCommand() *cobra.Command {
	r, address := &running{}, ""
	command := &cobra.Command{
		Use:     "terraform-backend [flags] NAME -- COMMAND [ARG…]",
		Short:   "Run Terraform with its state behind a lock",
		Long:    terraformHelp,
		Example: `  fencepost terraform-backend --state file:/srv/prod.tfstate tf:prod -- terraform apply`,
		RunE: func(command *cobra.Command, args []string) error {
			if dash := command.ArgsLenAtDash(); dash != 1 || len(args) < 2 {
				return usage("name a lock, then --, then the command: " +
					"fencepost terraform-backend --state file:PATH NAME -- terraform apply")
			}
			if err := r.check(command.Flags()); err != nil {
				return err
			}
			state, err := tfstate.Open(address, args[0])
			if err != nil {
				return &exit{codeUsage, err}
			}
			return a.terraform(r, state, args[0], args[1:])
		},
	}
	flags := command.Flags()
	flags.StringVar(&address, "state", "", "`address` of the state: file:PATH, s3://BUCKET/KEY or postgres://HOST/DATABASE")
	_ = command.MarkFlagRequired("state")
	r.bindLease(flags)
	r.bindEnd(flags)
	return command
}

// terraform runs the command with a backend.
func (a *app) terraform(r *running, state tfstate.State, lock string, command []string) error {
	path, code, err := child.Find(command[0])
	if err != nil {
		return &exit{code, err}
	}
	to, err := a.settings.Client(0)
	if err != nil {
		return err
	}
	defer func() { _ = to.Close() }() // which releases nothing
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, child.Signals()...)
	ends := slices.DeleteFunc(child.Signals(), func(s os.Signal) bool { return !child.Ends(s) })
	asked, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	r.changes, r.fenced = make(chan chan struct{}), true
	b := &backend{running: r, client: to, state: state, lock: lock}
	if err := b.serve(asked); err != nil {
		return err
	}
	defer b.close()
	err = r.start(path, command, append(os.Environ(), b.env()...), b, signals)
	if b.late.Load() { // Terraform has advised to push
		say("do not push errored.tfstate to %s: it would replace the state of a later holder; "+
			"import what it has and the state has not", lock)
	}
	if err == nil && !b.used.Load() {
		say(`the command did not use the state: is backend "http" {} in its configuration, empty?`)
	}
	return err
}
