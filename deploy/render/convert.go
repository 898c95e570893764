package main

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	quantity "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// structure converts a block of Terraform's into an object of the type. What is empty in
// it was not set, and is left out.
func structure(of reflect.Type, values map[string]any) (map[string]any, error) {
	names := fields(of)
	object := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if unset(values[name]) {
			continue
		}
		f, ok := names[name]
		if !ok {
			return nil, fmt.Errorf("%s: %s has no such field", name, of)
		}
		v, err := convert(f.of, values[name])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		object[f.name] = v
	}
	return object, nil
}

func unset(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case float64:
		return v == 0
	case bool:
		return false
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

func convert(of reflect.Type, v any) (any, error) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch of {
	case reflect.TypeFor[quantity.Quantity]():
		return v, nil
	case reflect.TypeFor[intstr.IntOrString]():
		if n, err := strconv.Atoi(fmt.Sprint(v)); err == nil {
			return n, nil
		}
		return v, nil
	}
	switch of.Kind() {
	case reflect.Struct:
		return block(of, v)
	case reflect.Slice:
		return list(of.Elem(), v)
	case reflect.Map:
		return v, nil
	case reflect.Int32, reflect.Int64:
		return number(v)
	}
	return v, nil
}

// block unpacks the list of one element that a nested block is. An empty block was set all
// the same.
func block(of reflect.Type, v any) (any, error) {
	l, isList := v.([]any)
	if isList && len(l) == 1 {
		v = l[0]
	}
	switch v := v.(type) {
	case nil:
		return map[string]any{}, nil
	case map[string]any:
		return structure(of, v)
	}
	return nil, fmt.Errorf("%v is no %s", v, of)
}

func list(of reflect.Type, v any) (any, error) {
	l, isList := v.([]any)
	if !isList {
		return nil, fmt.Errorf("%v is no list", v)
	}
	out := make([]any, len(l))
	for i, e := range l {
		var err error
		if out[i], err = convert(of, e); err != nil {
			return nil, fmt.Errorf("%d: %w", i, err)
		}
	}
	return out, nil
}

// number reads what the provider keeps as text: users, counts, and modes of files in octal.
func number(v any) (any, error) {
	text, isText := v.(string)
	if !isText {
		return v, nil
	}
	return strconv.ParseInt(text, 0, 64)
}

// field is one of Kubernetes' and its type.
type field struct {
	name string
	of   reflect.Type
}

// fields lists the fields of a type under the names that Terraform may have for them.
func fields(of reflect.Type) map[string]field {
	all := map[string]field{}
	for i := range of.NumField() {
		f := of.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if strings.Contains(options, "inline") {
			maps.Copy(all, fields(f.Type))
			continue
		}
		for _, called := range names(name) {
			all[called] = field{name: name, of: f.Type}
		}
	}
	return all
}

// names returns a field's name in small letters and underscores, and for many of something
// that of one: each is a block of its own.
func names(name string) []string {
	snake := underscored(name)
	all := []string{snake}
	switch {
	case strings.HasSuffix(snake, "policies"):
		all = append(all, strings.TrimSuffix(snake, "ies")+"y")
	case strings.HasSuffix(snake, "s"):
		all = append(all, strings.TrimSuffix(snake, "s"))
	}
	return all
}

func underscored(name string) string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		if unicode.IsUpper(r) && i > 0 && (unicode.IsLower(
			runes[i-1],
		) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
