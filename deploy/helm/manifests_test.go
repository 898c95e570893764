package helm_test

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// TestManifests: Kubernetes knows each field of the manifests and of the chart with all that it can
// do, and what their objects refer to is there.
func TestManifests(t *testing.T) {
	t.Parallel()
	all := map[string]manifests{"everything": rendered(t, everything(t))}
	files, err := filepath.Glob("../kubernetes/*.yaml")
	if err != nil || len(files) < 4 {
		t.Fatalf("%q, %v", files, err)
	}
	for _, file := range files {
		all[file] = parse(t, read(t, file))
	}
	for name, objects := range all {
		for key, object := range objects {
			switch o := object.(type) {
			case *appsv1.Deployment:
				podIsGood(t, name+" "+key, o.Spec.Template.Spec)
				selects(t, name+" "+key, objects, o.Spec.Template.Labels, o.Spec.Selector)
			case *appsv1.StatefulSet:
				podIsGood(t, name+" "+key, o.Spec.Template.Spec)
				selects(t, name+" "+key, objects, o.Spec.Template.Labels, o.Spec.Selector)
			case *batchv1.CronJob:
				podIsGood(t, name+" "+key, o.Spec.JobTemplate.Spec.Template.Spec)
			case *batchv1.Job:
				podIsGood(t, name+" "+key, o.Spec.Template.Spec)
			case *corev1.Pod:
				podIsGood(t, name+" "+key, o.Spec)
			}
		}
	}
}

// podIsGood: a pod is what the restricted standard asks for, its probes ask ports that it has, its
// files of Secrets are its group's, and each file that a flag names is mounted.
func podIsGood(t *testing.T, where string, pod corev1.PodSpec) {
	t.Helper()
	if s := pod.SecurityContext; !*s.RunAsNonRoot || s.SeccompProfile.Type != "RuntimeDefault" ||
		*pod.AutomountServiceAccountToken || *pod.EnableServiceLinks {
		t.Errorf("%s: the pod may do more than it needs", where)
	}
	for _, v := range pod.Volumes {
		if v.Secret != nil && *v.Secret.DefaultMode != 0o440 {
			t.Errorf("%s: others can read the files of %s", where, v.Name)
		}
	}
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		s := c.SecurityContext
		if *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || !*s.RunAsNonRoot ||
			!slices.Contains(s.Capabilities.Drop, "ALL") {
			t.Errorf("%s: %s may do more than it needs", where, c.Name)
		}
		probesAsk(t, where, c)
		files := mounted(pod, c)
		for _, file := range regexp.MustCompile(`/etc/(?:fencepost|etcd)/[^ ,]+`).FindAllString(
			strings.Join(c.Args, " "), -1,
		) {
			if !slices.Contains(files, file) {
				t.Errorf("%s: %s names %s, and finds %q", where, c.Name, file, files)
			}
		}
	}
}

func probesAsk(t *testing.T, where string, c corev1.Container) {
	t.Helper()
	for _, p := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
		if p != nil && !slices.ContainsFunc(c.Ports, func(port corev1.ContainerPort) bool {
			return port.Name == p.HTTPGet.Port.StrVal
		}) {
			t.Errorf("%s: a probe asks %v, which is no port", where, p.HTTPGet.Port)
		}
	}
}

// selects: a budget and a Service are for these pods, and no pod besides them is behind it.
func selects(
	t *testing.T, where string, all manifests, pods map[string]string, selector *metav1.LabelSelector,
) {
	t.Helper()
	budgets, services := 0, 0
	matches := func(selector map[string]string, pods map[string]string) bool {
		return labels.SelectorFromSet(selector).Matches(labels.Set(pods))
	}
	for _, object := range all {
		switch o := object.(type) {
		case *policyv1.PodDisruptionBudget:
			if maps.Equal(o.Spec.Selector.MatchLabels, selector.MatchLabels) &&
				o.Spec.MaxUnavailable.IntValue() == 1 {
				budgets++
			}
		case *corev1.Service:
			if matches(o.Spec.Selector, pods) {
				services++
			}
		case *corev1.Pod:
			if matches(selector.MatchLabels, o.Labels) {
				t.Errorf("%s: the test's pod is taken for one of them", where)
			}
		}
	}
	if budgets != 1 || services != 1 || !matches(selector.MatchLabels, pods) {
		t.Errorf("%s: %d budgets of one pod, %d services", where, budgets, services)
	}
}

// TestRestore: the Job stands for any member and any snapshot of the manifests of production.
func TestRestore(t *testing.T) {
	t.Parallel()
	text := strings.NewReplacer("MEMBER", "1", "SNAPSHOT", "a.db").Replace(
		read(t, "../kubernetes/restore.yaml"),
	)
	job := get[*batchv1.Job](t, parse(t, text), "fencepost-etcd-restore-1")
	set := get[*appsv1.StatefulSet](
		t, parse(t, read(t, "../kubernetes/production.yaml")), "fencepost-etcd",
	)
	pod := job.Spec.Template.Spec
	if claim := pod.Volumes[0].PersistentVolumeClaim.ClaimName; claim != "data-fencepost-etcd-1" ||
		job.Namespace != set.Namespace {
		t.Errorf("it restores %s in %s", claim, job.Namespace)
	}
	if !slices.Contains(pod.Containers[0].Args, "/backup/a.db") {
		t.Errorf("it does not read the snapshot: %q", pod.Containers[0].Args)
	}
}

// TestRecipes: Kubernetes knows each field of the recipes.
func TestRecipes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"kubernetes-cronjob.yaml", "kubernetes-migration.yaml"} {
		if all := parse(t, read(t, "../recipes/"+name)); len(all) != 1 {
			t.Errorf("%s has %d objects", name, len(all))
		}
	}
}

// TestVersion: the chart, the application and the images have the version of the changelog.
func TestVersion(t *testing.T) {
	t.Parallel()
	heading := regexp.MustCompile(`(?m)^## (.+)$`).FindStringSubmatch(read(t, "../../CHANGELOG.md"))
	for file, line := range map[string]string{
		"fencepost/Chart.yaml":      "\nversion: " + heading[1] + "\nappVersion: " + heading[1] + "\n",
		"values/minimal.yaml":       "\nimage: fencepost:v" + heading[1] + "\n",
		"values/external-etcd.yaml": "/fencepost:v" + heading[1] + "\n",
		"values/production.yaml":    "/fencepost:v" + heading[1] + "\n",
	} {
		if !strings.Contains(read(t, file), line) {
			t.Errorf("%s has no line %q", file, line)
		}
	}
}
