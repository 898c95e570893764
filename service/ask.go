package service

import "github.com/fencepost/fencepost/lock"

// checkAsk returns what is wrong with what a request asks of the holders.
func (r AcquireRequest) checkAsk() error {
	switch {
	case r.AskWithin == nil:
		return nil
	case r.Wait == 0:
		return lock.Invalid("request_release", "needs wait_seconds: who does not wait asks nobody")
	case *r.AskWithin < 0 || *r.AskWithin > lock.MaxAskWithin:
		return lock.Invalid("request_release.within_seconds", "must be between 0 and %g", lock.MaxAskWithin.Seconds())
	}
	return nil
}
