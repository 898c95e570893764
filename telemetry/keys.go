package telemetry

import "go.opentelemetry.io/otel/attribute"

func waitOutcomes() []string {
	return []string{WaitGranted, WaitTimeout, WaitCancelled, WaitRefused, WaitError}
}

func renewalOutcomes() []string {
	return []string{OutcomeOK, OutcomeLate, OutcomeLost, OutcomeError}
}

func webhookOutcomes() []string {
	return []string{"delivered", "failed", "throttled", "gone", "rejected", "expired"}
}

type waitKey struct {
	outcome   string
	contended bool
}

func waitKeys() (all []waitKey) {
	for _, outcome := range waitOutcomes() {
		all = append(all, waitKey{outcome, false}, waitKey{outcome, true})
	}
	return all
}

func (k waitKey) attributes() []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("outcome", k.outcome), attribute.Bool("contended", k.contended),
	}
}

// holdKey is the mode of a hold, and how it ended.
type holdKey struct{ mode, end string }

func holdKeys() (all []holdKey) {
	for _, mode := range []string{"exclusive", "shared", "semaphore"} {
		for _, end := range []string{HoldReleased, HoldExpired, HoldRevoked, HoldUnknown, Other} {
			all = append(all, holdKey{mode, end})
		}
	}
	return all
}

func (k holdKey) attributes() []attribute.KeyValue {
	return []attribute.KeyValue{attribute.String("mode", k.mode), attribute.String("end", k.end)}
}

type operationKey struct{ operation, outcome string }

func (k operationKey) attributes() []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("operation", k.operation), attribute.String("outcome", k.outcome),
	}
}

type requestKey struct {
	method, route, status string
	wait                  bool
}

func (k requestKey) attributes() []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("method", k.method), attribute.String("route", k.route),
		attribute.String("status", k.status), attribute.Bool("wait", k.wait),
	}
}
