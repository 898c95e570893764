package handlers

import "net/http"

const (
	// maxStreams is how many requests a client may have under way on one connection of
	// HTTP/2. For more it opens another one.
	maxStreams = 250

	// How many unread bytes a connection of HTTP/2 may have. A
	// body has at most maxBody.
	connectionWindow = 64 << 10
	streamWindow     = 2 * maxBody
)

// HTTP2 is what one connection of HTTP/2 may ask for: about as much as one of HTTP/1.1.
// Resets, settings and pings without end are bounded by net/http itself.
func HTTP2() *http.HTTP2Config {
	return &http.HTTP2Config{
		MaxConcurrentStreams:          maxStreams,
		MaxReadFrameSize:              16 << 10,
		MaxReceiveBufferPerConnection: connectionWindow,
		MaxReceiveBufferPerStream:     streamWindow,
		// The deadline of an answer ends its stream, for which there has to be room on the
		// connection too.
		WriteByteTimeout: defaultAnswerTimeout,
	}
}
