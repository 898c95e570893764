// Package subscription is who is told what by webhook: what tenants subscribed to, the
// secrets that sign what they are told, and each replica's copy of both. All of it is
// kept in small records of the store. What is owed to whom, and the sending, is not here.
package subscription
