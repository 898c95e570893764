// Command render turns what Terraform plans into plain manifests of Kubernetes.
//
//	terraform show -json plan | render >manifests.yaml
//
// Terraform's provider has its own names for fields. Each is matched with a field of
// Kubernetes' own types; one that has none, or a value that does not fit, is an error.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// plan is what is used of the output of terraform show -json.
type plan struct {
	Planned struct {
		Root module `json:"root_module"`
	} `json:"planned_values"`
}

type module struct {
	Resources []resource `json:"resources"`
	Children  []module   `json:"child_modules"`
}

type resource struct {
	Address string         `json:"address"`
	Mode    string         `json:"mode"`
	Type    string         `json:"type"`
	Values  map[string]any `json:"values"`
}

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "render:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	var p plan
	if err := json.NewDecoder(in).Decode(&p); err != nil {
		return fmt.Errorf("read the plan: %w", err)
	}
	all := p.Planned.Root.all()
	if len(all) == 0 {
		return fmt.Errorf("nothing is planned")
	}
	w := bufio.NewWriter(out)
	for i, r := range all {
		text, err := r.manifest()
		if err != nil {
			return fmt.Errorf("%s: %w", r.Address, err)
		}
		if i > 0 {
			fmt.Fprintln(w, "---")
		}
		fmt.Fprintf(w, "%s", text)
	}
	return w.Flush()
}

// all returns the resources of a module and of its child modules, always in the same order.
func (m module) all() []resource {
	list := slices.Clone(m.Resources)
	for _, child := range m.Children {
		list = append(list, child.all()...)
	}
	slices.SortFunc(list, func(a, b resource) int { return strings.Compare(a.Address, b.Address) })
	return list
}

func (r resource) manifest() ([]byte, error) {
	k, ok := kinds()[r.Type]
	if !ok {
		return nil, fmt.Errorf("there is no kind for %s", r.Type)
	}
	object, err := k.object(r.Values)
	if err != nil {
		return nil, err
	}
	text, err := yaml.Marshal(object)
	if err != nil {
		return nil, err
	}
	// Kubernetes' own types have the last word.
	return text, yaml.UnmarshalStrict(text, k.empty())
}
