package certificate

import "crypto/tls"

// Config is that of a server which shows the pair as it is when a client comes, and speaks
// HTTP/2 and HTTP/1.1. With authorities, which may be nil, a client may show a certificate
// that one of them signed; any other ends the connection.
func Config(p *Pair, clients *Authorities) *tls.Config {
	base := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, GetCertificate: p.show}
	if clients == nil {
		return base
	}
	// A session that is resumed would keep what was verified when it began.
	base.SessionTicketsDisabled = true
	base.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return &tls.Config{
			MinVersion: base.MinVersion, NextProtos: base.NextProtos, GetCertificate: p.show, SessionTicketsDisabled: true,
			ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: clients.get(),
		}, nil
	}
	return base
}
