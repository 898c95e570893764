// Package fencehttp refuses requests of a holder whose lock a later one has acquired. The holder
// sends its fence with each request; the guard keeps the greatest one of each resource.
//
//	guard := fencehttp.Guard{Store: fences}
//	http.ListenAndServe(":8000", guard.Wrap(mux))
//
// A request can still be overtaken between the check and what its handler writes. [Fence] gives the
// handler the fence: compare it again in the transaction that writes, where the data allows it.
package fencehttp
