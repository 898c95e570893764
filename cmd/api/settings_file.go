package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// maxSettings bounds a configuration file, in bytes.
const maxSettings = 64 << 10

// setting is one key of a configuration file.
type setting struct {
	name, text string
	line       int
	wrong      string // why the value cannot be one
}

// readSettings reads a file of YAML, which JSON is too: one mapping of names to plain
// values. A value is taken as it is written, so that none turns into another by a rule of
// YAML, as no and 010 do.
func readSettings(path string) ([]setting, error) {
	text, err := readAtMost(path, maxSettings)
	if err != nil {
		return nil, err
	}
	document, err := parser.ParseBytes(bytes.TrimPrefix(text, []byte(byteOrderMark)), 0)
	var syntax yaml.Error
	if errors.As(err, &syntax) && syntax.GetToken() != nil {
		return nil, usagef("%s, line %d: %s", path, syntax.GetToken().Position.Line, syntax.GetMessage())
	}
	if err != nil {
		return nil, usagef("%s is not YAML", path)
	}
	return settingsOf(path, document)
}

func settingsOf(path string, document *ast.File) (settings []setting, err error) {
	for _, part := range document.Docs {
		switch body := part.Body.(type) {
		case nil, *ast.CommentGroupNode:
		case *ast.MappingNode:
			for _, pair := range body.Values {
				settings = append(settings, settingOf(pair))
			}
		case *ast.MappingValueNode:
			settings = append(settings, settingOf(body))
		default:
			return nil, usagef("%s is not a list of lines of the form name: value", path)
		}
	}
	return settings, nil
}

func settingOf(pair *ast.MappingValueNode) setting {
	key := pair.Key.GetToken()
	s := setting{name: key.Value, line: key.Position.Line}
	switch value := pair.Value.(type) {
	case *ast.StringNode:
		s.text = value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		s.text = value.GetToken().Value
	case *ast.MappingNode:
		s.pairs(value.Values)
	case *ast.MappingValueNode:
		s.pairs([]*ast.MappingValueNode{value})
	case *ast.NullNode:
		s.wrong = `has no value; an empty one is ""`
	default:
		s.wrong = "must be one plain value"
	}
	return s
}

// pairs reads a map of plain values as name=value,…, which only the quotas and the identity
// provider are.
func (s *setting) pairs(of []*ast.MappingValueNode) {
	var texts []string
	for _, pair := range of {
		one := settingOf(pair)
		if one.wrong != "" || s.name != quotasFlag && s.name != oidcFlag {
			s.wrong = "must be one plain value"
			return
		}
		texts = append(texts, one.name+"="+one.text)
	}
	s.text = strings.Join(texts, ",")
}

// readAtMost reads a regular file that is not longer than that.
func readAtMost(path string, most int64) ([]byte, error) {
	// Opening a pipe would block.
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%s is longer than %d bytes", path, most)
	}
	return text, errors.Join(err, file.Close())
}
