// Package audit keeps who did what to a tenant's locks besides their own clients: small
// records, each written with what it tells of and never changed, within bounds of age and
// number.
package audit
