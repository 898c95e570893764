package audit

// Keep has the log keep no more than so many records.
func (l *Log) Keep(ofTenant, inAll int) { l.ofTenant, l.inAll = ofTenant, inAll }
