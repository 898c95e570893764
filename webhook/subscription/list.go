package subscription

import (
	"context"

	"github.com/fencepost/fencepost/store"
)

// listAll reads the records of a kind, of one tenant or, with "", all: the first ones up to
// most.
func listAll(ctx context.Context, records store.RecordLister, kind, tenant string, most int) (all []store.Record, err error) {
	for record, err := range store.EachRecord(ctx, records, store.RecordQuery{Kind: kind, Tenant: tenant}) {
		if err != nil {
			return nil, err
		}
		if all = append(all, record); len(all) >= most {
			break
		}
	}
	return all, nil
}
