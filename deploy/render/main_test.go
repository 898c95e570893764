package main

import (
	"bytes"
	"strings"
	"testing"
)

// render renders one resource.
func render(t *testing.T, kind, values string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := run(strings.NewReader(`{"planned_values":{"root_module":{"child_modules":[{"resources":[
		{"address":"module.a.`+kind+`.b","type":"`+kind+`","values":`+values+`}]}]}}}`), &out)
	return out.String(), err
}

func TestManifests(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ kind, values, want string }{
		"text for numbers and percentages": {
			"kubernetes_pod_disruption_budget_v1",
			`{"id":null,"metadata":[{"name":"a","labels":null}],"spec":[{"max_unavailable":"1","min_available":"","selector":[{"match_labels":{"a":"b"}}]}]}`,
			"apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata:\n  name: a\nspec:\n  maxUnavailable: 1\n  selector:\n    matchLabels:\n      a: b\n",
		},
		"abbreviations, and what is false": {
			"kubernetes_service_v1",
			`{"metadata":[{"name":"a"}],"spec":[{"cluster_ip":"None","allocate_load_balancer_node_ports":true,"publish_not_ready_addresses":false,"port":[{"port":80,"target_port":"http"}]}],"wait_for_load_balancer":true}`,
			"apiVersion: v1\nkind: Service\nmetadata:\n  name: a\nspec:\n  clusterIP: None\n  ports:\n  - port: 80\n    targetPort: http\n  publishNotReadyAddresses: false\n",
		},
		"blocks in lists, and an empty one": {
			"kubernetes_network_policy_v1",
			`{"metadata":[{"name":"a"}],"spec":[{"pod_selector":[null],"ingress":[{"from":[{"ip_block":[{"cidr":"10.0.0.0/8","except":[]}]}],"ports":[{"port":"443"}]}]}]}`,
			"apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata:\n  name: a\nspec:\n  ingress:\n  - from:\n    - ipBlock:\n        cidr: 10.0.0.0/8\n    ports:\n    - port: 443\n  podSelector: {}\n",
		},
	} {
		got, err := render(t, tc.kind, tc.values)
		if err != nil || got != tc.want {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}
}

func TestModesOfFiles(t *testing.T) {
	t.Parallel()
	got, err := number("0440")
	if err != nil || got != int64(0o440) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ kind, values, says string }{
		"a field that Kubernetes has not": {"kubernetes_service_v1", `{"spec":[{"bogus":1}]}`, "bogus"},
		"a value that does not fit":       {"kubernetes_service_v1", `{"spec":[{"port":[{"port":"many"}]}]}`, "many"},
		"a kind that nobody knows":        {"kubernetes_bogus_v1", `{}`, "kubernetes_bogus_v1"},
		"two of what there is one":        {"kubernetes_service_v1", `{"spec":[{},{}]}`, "spec"},
	} {
		if got, err := render(t, tc.kind, tc.values); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}
	if err := run(strings.NewReader("{}"), &bytes.Buffer{}); err == nil {
		t.Error("nothing planned is no error")
	}
}
