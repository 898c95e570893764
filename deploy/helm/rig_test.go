package helm_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
)

// least are the values without which the chart renders nothing.
const least = "{image: 'fencepost:v1.2.3', auth: {jwtSecret: {name: jwt}}}"

// helm is the path of the program. It is built once: parallel tests would all build it.
var helm = sync.OnceValue(func() string {
	path, err := exec.Command("go", "tool", "-n", "helm").Output()
	if err != nil {
		panic(err)
	}
	return strings.TrimSpace(string(path))
})

// template renders the chart with values, each a file of YAML, from the second on as text.
func template(t *testing.T, release string, values ...string) (string, error) {
	t.Helper()
	args := []string{"template", release, "fencepost", "--namespace", "locks"}
	for i, text := range values {
		file := filepath.Join(t.TempDir(), fmt.Sprintf("%d.yaml", i))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "-f", file)
	}
	run := exec.CommandContext(t.Context(), helm(), args...)
	var complaints bytes.Buffer
	run.Stderr = &complaints
	out, err := run.Output()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, complaints.String())
	}
	return string(out), nil
}

// manifests are objects by their type and name.
type manifests map[string]runtime.Object

// parse reads manifests. Kubernetes' own types have the last word: an unknown field is an error.
func parse(t *testing.T, text string) manifests {
	t.Helper()
	codecs := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict)
	strict := codecs.UniversalDeserializer()
	all := manifests{}
	for _, document := range strings.Split("\n"+text, "\n---\n") {
		if onlyComments(document) {
			continue
		}
		object, _, err := strict.Decode([]byte(document), nil, nil)
		if err != nil {
			t.Fatalf("%v:\n%s", err, document)
		}
		of, err := meta.Accessor(object)
		if err != nil {
			t.Fatal(err)
		}
		key := keyOf(reflect.TypeOf(object), of.GetName())
		if all[key] != nil {
			t.Fatalf("there are two of %s", key)
		}
		all[key] = object
	}
	return all
}

func onlyComments(document string) bool {
	for line := range strings.Lines(document) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			return false
		}
	}
	return true
}

func keyOf(of reflect.Type, name string) string { return of.String() + "/" + name }

func rendered(t *testing.T, values ...string) manifests {
	t.Helper()
	out, err := template(t, "fencepost", append([]string{least}, values...)...)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, out)
}

// get returns the object of a type with a name.
func get[T runtime.Object](t *testing.T, all manifests, name string) T {
	t.Helper()
	key := keyOf(reflect.TypeFor[T](), name)
	object, ok := all[key].(T)
	if !ok {
		t.Fatalf("there is no %s", key)
	}
	return object
}

// everything are values that set what the manifests of deploy/kubernetes leave out.
func everything(t *testing.T) string {
	t.Helper()
	return read(t, "values/everything.yaml")
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// mounted lists the files of Secrets and ConfigMaps that a container finds, in folders of volumes.
func mounted(pod corev1.PodSpec, c corev1.Container) []string {
	var all []string
	for _, m := range c.VolumeMounts {
		for _, v := range pod.Volumes {
			if v.Name != m.Name {
				continue
			}
			for _, item := range items(v) {
				all = append(all, m.MountPath+"/"+item.Path)
			}
		}
	}
	return all
}

func items(v corev1.Volume) []corev1.KeyToPath {
	switch {
	case v.Secret != nil && v.Secret.Items == nil: // of type kubernetes.io/tls, with a ca.crt
		return []corev1.KeyToPath{{Path: "tls.crt"}, {Path: "tls.key"}, {Path: "ca.crt"}}
	case v.Secret != nil:
		return v.Secret.Items
	case v.ConfigMap != nil:
		return v.ConfigMap.Items
	}
	return nil
}
