package store

import "strings"

// scanner reads most of the JSON that [Encode] writes, several times as fast as encoding/json:
// objects of texts without escapes, numbers and true. It rejects all other JSON, valid or not,
// and the caller has encoding/json read that. A replica reads the entries of all replicas, so
// this is most of what a replica that only follows does for an entry.
type scanner struct{ rest string }

// object reads an object. field reads the value of one field, or returns false.
func (s *scanner) object(field func(name string) bool) bool {
	if !s.next('{') {
		return false
	}
	for {
		var name string
		if !s.text(&name) || !s.next(':') || !field(name) {
			return false
		}
		if s.next('}') {
			return true
		}
		if !s.next(',') {
			return false
		}
	}
}

func (s *scanner) next(c byte) bool {
	if s.rest == "" || s.rest[0] != c {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

// text reads a text of ASCII characters. It shares memory with what the scanner reads.
func (s *scanner) text(to *string) bool {
	if !s.next('"') {
		return false
	}
	for i := range len(s.rest) {
		switch c := s.rest[i]; {
		case c == '"':
			*to, s.rest = s.rest[:i], s.rest[i+1:]
			return true
		case c < ' ' || c == '\\' || c > '~':
			return false
		}
	}
	return false
}

// int reads a number of up to 18 digits.
func (s *scanner) int(to *int64) bool {
	const most = 18
	n, i := int64(0), 0
	for ; i < len(s.rest) && '0' <= s.rest[i] && s.rest[i] <= '9'; i++ {
		n = n*10 + int64(s.rest[i]-'0')
		if i == most {
			return false
		}
	}
	if i == 0 || i > 1 && s.rest[0] == '0' {
		return false
	}
	*to, s.rest = n, s.rest[i:]
	return true
}

func (s *scanner) small(to *int) bool {
	n := int64(0)
	ok := s.int(&n)
	*to = int(n)
	return ok
}

func (s *scanner) isTrue(to *bool) bool {
	s.rest, *to = strings.CutPrefix(s.rest, "true")
	return *to
}

// pass skips an object. It does not notice all that is wrong in it.
func (s *scanner) pass() bool {
	depth, ignored := 0, ""
	for s.rest != "" {
		switch s.rest[0] {
		case '"':
			if !s.text(&ignored) {
				return false
			}
			continue
		case '{':
			depth++
		case '}':
			depth--
		}
		if s.rest = s.rest[1:]; depth <= 0 {
			return depth == 0
		}
	}
	return false
}

// scan reads a value if a scanner can.
func (v *Value) scan(data []byte) bool {
	s := scanner{string(data)}
	return s.object(func(name string) bool { return v.scanField(&s, name) }) && s.rest == ""
}

func (v *Value) scanField(s *scanner, name string) bool {
	switch name {
	case "handle":
		return s.int(&v.Handle)
	case "mode":
		return s.text((*string)(&v.Mode))
	case "limit":
		return s.small(&v.Limit)
	case "permits":
		return s.small(&v.Permits)
	case "holder":
		return s.text(&v.Holder)
	case "named":
		return s.isTrue(&v.Named)
	case "subject":
		return s.text(&v.Subject)
	case "ttl_ms":
		return s.int(&v.TTL)
	case "enqueued_ms":
		return s.int(&v.Enqueued)
	case "wait_until_ms":
		return s.int(&v.Until)
	case "request":
		return s.text(&v.Request)
	case "async":
		return s.isTrue(&v.Async)
	case "only_newest":
		return s.isTrue(&v.Newest)
	case "trace":
		return s.text(&v.Trace)
	}
	return false
}

// scanEnds reads a record of ends without their entries' data, if a scanner can.
func scanEnds(data []byte) (ends []End, ok bool) {
	s := scanner{string(data)}
	if !s.next('[') {
		return nil, false
	}
	for {
		var e End
		if !s.object(func(name string) bool { return e.scanField(&s, name) }) {
			return nil, false
		}
		if ends = append(ends, e); s.next(']') {
			return ends, s.rest == ""
		}
		if !s.next(',') {
			return nil, false
		}
	}
}

func (e *End) scanField(s *scanner, name string) bool {
	switch name {
	case "id":
		return s.text((*string)(&e.ID))
	case "tenant":
		return s.text(&e.Tenant)
	case "reason":
		return s.text((*string)(&e.Reason))
	case "at_ms":
		return s.int(&e.At)
	case "was":
		return s.pass()
	}
	return false
}
