package store

import (
	"errors"
	"fmt"
)

// Form is the form of stored data that this code reads and writes. A store's own record has the
// number. Data that a reader can ignore does not change it. A change that a reader would misread
// raises it, and comes with a migration that records the new number first, so that older replicas
// stop granting. It may give existing fields another meaning, but not another JSON type.
//
// Forms 1 to 6 were never released, and nothing reads them.
const Form = 7

// ErrNewerForm is the cause of an error about stored data that only a newer version understands.
// Other replicas may still work.
var ErrNewerForm = errors.New("the store is in use by a newer version of the server")

// ErrOlderForm is the cause of an error about stored data that no version of today reads.
var ErrOlderForm = errors.New("the store was written by an earlier version of the server")

// CheckForm returns an [ErrNewerForm] or an [ErrOlderForm] if a store's records name another form
// than [Form]. They name none, which is 0, before form 2.
func CheckForm(form int) error {
	switch {
	case form > Form:
		return fmt.Errorf("%w: its form is %d, and this version understands form %d; "+
			"nothing is granted here, start the newer version again", ErrNewerForm, form, Form)
	case form < Form:
		return fmt.Errorf("%w: its form is %d, and this version reads form %d alone; start with an "+
			"empty store, and with --fence-floor set above every fence ever handed out",
			ErrOlderForm, form, Form)
	}
	return nil
}
