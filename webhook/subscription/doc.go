// Package subscription keeps the tenants' webhook subscriptions, the secrets that sign the
// messages, and each replica's copy of both. All of it stands in small records of the store.
// Package outbox keeps the pending deliveries and sends them.
package subscription
