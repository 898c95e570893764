package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/yaml"
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
		"a value that does not fit": {
			"kubernetes_service_v1", `{"spec":[{"port":[{"port":"many"}]}]}`, "many",
		},
		"a kind that nobody knows": {"kubernetes_bogus_v1", `{}`, "kubernetes_bogus_v1"},
		"two of what there is one": {"kubernetes_service_v1", `{"spec":[{},{}]}`, "spec"},
	} {
		if got, err := render(t, tc.kind, tc.values); err == nil ||
			!strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}
	if err := run(strings.NewReader("{}"), &bytes.Buffer{}); err == nil {
		t.Error("nothing planned is no error")
	}
}

// TestRestore: the job that restores a member, which is written by hand, is one that Kubernetes
// takes, and names what the manifests name.
func TestRestore(t *testing.T) {
	t.Parallel()
	read := func(name string) string {
		b, err := os.ReadFile("../kubernetes/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	var job batchv1.Job
	text := strings.NewReplacer("MEMBER", "1", "SNAPSHOT", "a.db").Replace(read("restore.yaml"))
	if err := yaml.UnmarshalStrict([]byte(text), &job); err != nil {
		t.Fatal(err)
	}
	production := read("production.yaml")
	pod := job.Spec.Template.Spec
	want := []string{
		"image: " + pod.Containers[0].Image,
		"claimName: " + pod.Volumes[1].PersistentVolumeClaim.ClaimName, "namespace: " + job.Namespace,
	}
	for _, arg := range pod.Containers[0].Args {
		if strings.HasPrefix(arg, "--initial-cluster=") || strings.HasPrefix(arg, "--data-dir=") {
			want = append(want, "- "+arg)
		}
	}
	for _, line := range want {
		if !strings.Contains(production, line+"\n") {
			t.Errorf("production.yaml has no %q", line)
		}
	}
	if claim := pod.Volumes[0].PersistentVolumeClaim.ClaimName; claim != "data-fencepost-etcd-1" ||
		len(want) != 5 {
		t.Errorf("the claim is %s; %q", claim, want)
	}
}

// TestRecipes: Kubernetes knows each field of the recipes.
func TestRecipes(t *testing.T) {
	t.Parallel()
	for name, into := range map[string]any{
		"kubernetes-cronjob.yaml": &batchv1.CronJob{}, "kubernetes-migration.yaml": &appsv1.Deployment{},
	} {
		text, err := os.ReadFile("../recipes/" + name)
		if err == nil {
			err = yaml.UnmarshalStrict(text, into)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
