package main

import (
	"embed"
	"fmt"
	"strings"
)

// snippets are an example in each language.
type snippets struct{ python, js, golang string }

func (s *snippets) add(more snippets) {
	s.python += more.python + "\n"
	s.js += more.js + "\n"
	s.golang += more.golang + "\n"
}

//go:embed snippets
var snippetFiles embed.FS

// readSnippets returns the examples with the clients, by operation; "start" begins each program. A
// line "== acquireLock" begins the example of an operation.
func readSnippets() (map[string]snippets, error) {
	all := map[string]snippets{}
	for name, put := range map[string]func(*snippets, string){
		"python.txt": func(s *snippets, text string) { s.python = text },
		"js.txt":     func(s *snippets, text string) { s.js = text },
		"go.txt":     func(s *snippets, text string) { s.golang = text },
	} {
		text, err := snippetFiles.ReadFile("snippets/" + name)
		if err != nil {
			return nil, err
		}
		for _, part := range strings.Split(string(text), "== ")[1:] {
			operation, code, _ := strings.Cut(part, "\n")
			s := all[operation]
			put(&s, code)
			all[operation] = s
		}
	}
	for operation, s := range all {
		if s.python == "" || s.js == "" || s.golang == "" {
			return nil, fmt.Errorf("%s needs an example in each language", operation)
		}
	}
	return all, nil
}
