package lock

// StaleWrite is a write that a resource rejected because its fence is below the greatest fence
// that the resource has seen.
type StaleWrite struct {
	Presented uint64 // the fence that came with the write
	Known     uint64 // the greatest fence that the resource has seen
	Resource  string // the resource's name, by the rules of [CheckHolder]
	Reporter  string // a short name of the credential that reported; reporters get equal shares
}

// Check returns what is wrong with a report, an [InvalidRequest], or nil.
func (w StaleWrite) Check() error {
	switch {
	case w.Presented == 0 || w.Presented > MaxNumber:
		return Invalid("fence_presented", "must be between 1 and %d", uint64(MaxNumber))
	case w.Known == 0 || w.Known > MaxNumber:
		return Invalid("fence_known", "must be between 1 and %d", uint64(MaxNumber))
	case w.Presented >= w.Known:
		return Invalid(
			"fence_presented", "must be less than fence_known: otherwise the write was not stale",
		)
	}
	if wrong := CheckHolder(w.Resource); wrong != "" {
		return Invalid("resource", "%s", wrong)
	}
	return nil
}
