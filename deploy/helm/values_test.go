package helm_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

func server(t *testing.T, all manifests) corev1.PodSpec {
	t.Helper()
	return get[*appsv1.Deployment](t, all, "fencepost").Spec.Template.Spec
}

// TestLint: Helm has no complaint about the chart, nor about the values of the manifests.
func TestLint(t *testing.T) {
	t.Parallel()
	for _, values := range []string{"minimal", "external-etcd", "production"} {
		out, err := exec.CommandContext(
			t.Context(), helm(), "lint", "--strict", "fencepost", "-f", "values/"+values+".yaml",
		).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", values, err, out)
		}
	}
}

// TestArguments: a value is a flag of the server, and what is not set is none.
func TestArguments(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		values     string
		want, none []string
	}{
		"the least": {
			"{}",
			[]string{
				"--store=etcd://fencepost-etcd-0.fencepost-etcd.locks.svc:2379," +
					"fencepost-etcd-1.fencepost-etcd.locks.svc:2379,fencepost-etcd-2.fencepost-etcd.locks.svc:2379",
				"--jwt-secret-file=/etc/fencepost/jwt/secret", "--max-ttl-seconds=3600",
				"--drain-delay-seconds=5", "--drain-seconds=20", "--log-level=info",
			},
			[]string{
				"--tls-cert", "--ops-listen", "--oidc", "--jwks", "--webhook", "--default-quotas", "--store-ca",
			},
		},
		"a store that exists": {
			`{etcd: {enabled: false}, store: {address: "zookeeper://zk:2181/locks", username: a, passwordSecret: {name: zk, key: word}}}`,
			[]string{
				"--store=zookeeper://zk:2181/locks", "--store-username=a",
				"--store-password-file=/etc/fencepost/store-password/password",
			},
			nil,
		},
		"sign-in that leads back to the Ingress": {
			`{oidc: {issuer: "https://a", clientID: b, principals: {name: c}},
			ingress: {enabled: true, host: d, tlsSecret: e, paths: [/dashboard]}}`,
			[]string{
				"--oidc=issuer=https://a,client_id=b," +
					"principals=/etc/fencepost/oidc-principals/principals.json," +
					"redirect_url=https://d/dashboard/sign-in/oidc/callback",
			},
			nil,
		},
		"all that there is": {
			everything(t),
			[]string{
				"--tls-cert=/etc/fencepost/tls/tls.crt", "--tls-key=/etc/fencepost/tls/tls.key",
				"--client-ca=/etc/fencepost/client-ca/ca.crt",
				"--principals=/etc/fencepost/principals/certificates.json", "--ops-listen=0.0.0.0:9090",
				"--store-ca=/etc/fencepost/store-ca/ca.crt", "--token-key-file=/etc/fencepost/token-key/key",
				"--jwt-audience=locks: all # of them", "--webhook-allow=10.1.0.0/16,fd00::/8",
				"--webhook-allow-http", "--webhook-ports=443,8443", "--trusted-proxy-hops=1",
				"--default-quotas=metadata_bytes=1073741824,requests_per_second=0",
				"--oidc=issuer=https://login.example.com,client_id=fencepost," +
					"client_secret_file=/etc/fencepost/oidc/secret," +
					"principals=/etc/fencepost/oidc-principals/claims.json," +
					"redirect_url=https://locks.example.com/dashboard/sign-in/oidc/callback," +
					"name_claim=email,scopes=profile groups",
				"--max-hold-seconds=60",
			},
			nil,
		},
	} {
		args := server(t, rendered(t, tc.values)).Containers[0].Args
		for _, want := range tc.want {
			if !slices.Contains(args, want) {
				t.Errorf("%s: there is no %s in %q", name, want, args)
			}
		}
		for _, none := range tc.none {
			if strings.Contains(strings.Join(args, " "), none) {
				t.Errorf("%s: %s was not asked for: %q", name, none, args)
			}
		}
	}
}

// TestStoreAwayRestartsNobody: a probe that restarts a replica does not ask the store.
func TestStoreAwayRestartsNobody(t *testing.T) {
	t.Parallel()
	c := server(t, rendered(t)).Containers[0]
	if c.LivenessProbe.HTTPGet.Path != "/healthz" || c.StartupProbe.HTTPGet.Path != "/healthz" ||
		c.ReadinessProbe.HTTPGet.Path != "/readyz" {
		t.Error("a replica is restarted while the store is away, or gets requests")
	}
}

// TestDrain: an update waits for the next replica, and none is killed while it drains.
func TestDrain(t *testing.T) {
	t.Parallel()
	d := get[*appsv1.Deployment](t, rendered(t, everything(t)), "fencepost")
	if grace := *d.Spec.Template.Spec.TerminationGracePeriodSeconds; grace <= 90 {
		t.Errorf("a replica is killed after %d s", grace)
	}
	if d.Spec.Strategy.RollingUpdate.MaxUnavailable.IntValue() != 0 {
		t.Error("an update ends replicas first")
	}
}

// TestSpread: a node or a zone that fails does not take all replicas, nor the quorum of etcd.
func TestSpread(t *testing.T) {
	t.Parallel()
	all := rendered(t)
	spread := func(pod corev1.PodSpec, labels map[string]string) (keys []string) {
		for _, c := range pod.TopologySpreadConstraints {
			if c.MaxSkew == 1 && c.WhenUnsatisfiable == corev1.ScheduleAnyway &&
				c.LabelSelector.MatchLabels["app.kubernetes.io/name"] == labels["app.kubernetes.io/name"] {
				keys = append(keys, c.TopologyKey)
			}
		}
		return keys
	}
	d := get[*appsv1.Deployment](t, all, "fencepost").Spec.Template
	if got := spread(d.Spec, d.Labels); !slices.Equal(
		got, []string{"topology.kubernetes.io/zone", "kubernetes.io/hostname"},
	) {
		t.Errorf("replicas: %q", got)
	}
	e := get[*appsv1.StatefulSet](t, all, "fencepost-etcd").Spec.Template
	apart := e.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if got := spread(e.Spec, e.Labels); !slices.Equal(got, []string{"topology.kubernetes.io/zone"}) ||
		apart[0].TopologyKey != "kubernetes.io/hostname" {
		t.Errorf("members: %q, %v", got, apart)
	}
}

// TestEtcd: the index does not grow without end, all but the metrics has TLS, and the disks stay.
func TestEtcd(t *testing.T) {
	t.Parallel()
	all := rendered(t, everything(t))
	set := get[*appsv1.StatefulSet](t, all, "fencepost-etcd")
	args := set.Spec.Template.Spec.Containers[0].Args
	for _, want := range []string{
		"--auto-compaction-mode=periodic", "--auto-compaction-retention=10m",
		"--quota-backend-bytes=2147483648", "--client-cert-auth", "--peer-client-cert-auth",
	} {
		if !slices.Contains(args, want) {
			t.Errorf("there is no %s: %q", want, args)
		}
	}
	for _, arg := range args {
		if strings.Contains(arg, "http://") && !strings.HasPrefix(arg, "--listen-metrics-urls=") {
			t.Errorf("this has no TLS: %s", arg)
		}
	}
	if set.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted != "Retain" {
		t.Error("the data goes with the set")
	}
	job := get[*batchv1.CronJob](t, all, "fencepost-etcd-backup").Spec.JobTemplate
	backup := job.Spec.Template.Spec
	if !slices.Contains(backup.Containers[0].Args, "--cacert=/etc/etcd/tls/ca.crt") ||
		backup.Volumes[0].PersistentVolumeClaim.ClaimName != "elsewhere" {
		t.Errorf("the backup: %+v", backup)
	}
}

// TestTLS: probes, Prometheus and the Ingress speak what the port speaks that they ask.
func TestTLS(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		values, probes, metrics, backend string
		port                             int32
	}{
		"without": {"{}", "http", "8080", "", 80},
		"with":    {everything(t), "ops", "9090", "HTTPS", 443},
	} {
		all := rendered(t, "{ingress: {enabled: true, host: a.example.com, tlsSecret: edge}}", tc.values)
		pod := get[*appsv1.Deployment](t, all, "fencepost").Spec.Template
		if pod.Annotations["prometheus.io/port"] != tc.metrics ||
			pod.Spec.Containers[0].LivenessProbe.HTTPGet.Port.StrVal != tc.probes {
			t.Errorf("%s: probes or Prometheus ask another port", name)
		}
		if port := get[*corev1.Service](t, all, "fencepost").Spec.Ports[0].Port; port != tc.port {
			t.Errorf("%s: the Service is on %d", name, port)
		}
		edge := get[*networkingv1.Ingress](t, all, "fencepost").Annotations
		if edge["nginx.ingress.kubernetes.io/backend-protocol"] != tc.backend {
			t.Errorf("%s: the Ingress speaks another protocol: %q", name, edge)
		}
	}
}

// TestNetworkPolicy: replicas reach the store, DNS and what webhooks may reach, and only those that
// are named reach the replicas and the members.
func TestNetworkPolicy(t *testing.T) {
	t.Parallel()
	egress := func(values string) []string {
		return reach(get[*networkingv1.NetworkPolicy](t, rendered(t, values), "fencepost").Spec.Egress)
	}
	private := "-10.0.0.0/8-172.16.0.0/12-192.168.0.0/16-100.64.0.0/10-169.254.0.0/16"
	public := "443 0.0.0.0/0" + private + " ::/0-fc00::/7-fe80::/10"
	if got := egress("{}"); !slices.Equal(got, []string{"53 53", "2379 pods", public}) {
		t.Errorf("least: %q", got)
	}
	if got := egress(
		`{etcd: {enabled: false}, store: {address: "etcd://a:2379,b:2380,c:2379", networkPolicyCIDR: 10.9.0.0/24}}`,
	); !slices.Equal(got, []string{"53 53", "2379 10.9.0.0/24", "2380 10.9.0.0/24", public}) {
		t.Errorf("a store that exists: %q", got)
	}
	all := rendered(t, everything(t))
	got := reach(get[*networkingv1.NetworkPolicy](t, all, "fencepost").Spec.Egress)
	if !slices.Equal(got, []string{
		"53 53", "2379 pods", "443 80 8443 0.0.0.0/0-10.0.0.0/8 ::/0-fc00::/7-fe80::/10 10.1.0.0/16 fd00::/8", "4318 fd00::/8",
	}) {
		t.Errorf("everything: %q", got)
	}
	in := get[*networkingv1.NetworkPolicy](t, all, "fencepost").Spec.Ingress
	if len(in) != 2 || len(in[0].From) != 2 || in[1].Ports[0].Port.IntValue() != 9090 ||
		in[1].From[0].NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"] != "prometheus" {
		t.Errorf("replicas are reached by %+v", in)
	}
	members := get[*networkingv1.NetworkPolicy](t, all, "fencepost-etcd").Spec.Ingress
	if len(members) != 3 || len(members[0].From) != 2 || len(members[1].From) != 1 {
		t.Errorf("members are reached by %+v", members)
	}
}

// reach writes each rule in one line: its ports, and its ranges with what they except.
func reach(rules []networkingv1.NetworkPolicyEgressRule) []string {
	var all []string
	for _, rule := range rules {
		var words []string
		for _, p := range rule.Ports {
			words = append(words, p.Port.String())
		}
		for _, to := range rule.To {
			if to.IPBlock == nil {
				words = append(words, "pods")
				continue
			}
			words = append(words, strings.Join(append([]string{to.IPBlock.CIDR}, to.IPBlock.Except...), "-"))
		}
		all = append(all, strings.Join(words, " "))
	}
	return all
}

// TestAutoscaling: with an autoscaler the Deployment leaves the number of replicas to it.
func TestAutoscaling(t *testing.T) {
	t.Parallel()
	all := rendered(t, everything(t))
	scaler := get[*autoscalingv2.HorizontalPodAutoscaler](t, all, "fencepost").Spec
	if *scaler.MinReplicas != 4 || len(scaler.Metrics) != 2 ||
		scaler.Metrics[1].Pods.Target.AverageValue.Value() != 400000 {
		t.Errorf("%+v", scaler)
	}
	if get[*appsv1.Deployment](t, all, "fencepost").Spec.Replicas != nil {
		t.Error("each upgrade resets the number of replicas")
	}
}

// TestRefused: values that make no deployment are refused, in words of theirs.
func TestRefused(t *testing.T) {
	t.Parallel()
	const oidc = `oidc: {issuer: "https://a.example.com", clientID: a, principals: {name: b}}`
	for values, says := range map[string]string{
		"{image: ''}":                                          "Set image, with a tag other than latest",
		"{image: 'fencepost:latest'}":                          "Set image, with a tag other than latest",
		"{image: 'fencepost'}":                                 "Set image, with a tag other than latest",
		"{replicas: 0}":                                        "at '/replicas': minimum: got 0, want 1",
		"{replicas: two}":                                      "at '/replicas': got string, want integer",
		"{replica: 2}":                                         "additional properties 'replica' not allowed",
		"{resources: {limits: {memory: null}}}":                "at '/resources/limits': missing property 'memory'",
		"{auth: {jwtSecret: {name: ''}}}":                      "Set auth.jwtSecret.name or auth.jwks",
		"{auth: {jwks: 'https://a/keys'}}":                     "auth.jwks needs auth.issuer and auth.audience",
		"{auth: {jwks: 'http://a/keys'}}":                      "at '/auth/jwks'",
		"{store: {address: 'etcd://a:2379'}}":                  "Set exactly one store",
		"{etcd: {enabled: false}}":                             "Set exactly one store",
		"{etcd: {enabled: false}, store: {address: 'a:2379'}}": "at '/store/address'",
		"{etcd: {enabled: false}, store: {address: 'etcd://a:2379', username: b}}": "need each other",
		"{etcd: {enabled: false}, store: {address: 'etcd://a:2379,b:99999'}}":      "b:99999 has no port",
		"{etcd: {enabled: false}, store: {address: 'zookeeper://a,b:2181/c'}}":     "a has no port",
		"{etcd: {members: 4}}":                                            "at '/etcd/members': value must be one of 1, 3, 5",
		"{etcd: {storage: 10Gi, quotaMiB: 8192}}":                         "etcd.storage is at least twice etcd.quotaMiB",
		"{etcd: {restore: {member: 9, snapshot: a}}}":                     "at '/etcd/restore/member'",
		"{replicas: 4, autoscaling: {enabled: true, maxReplicas: 3}}":     "autoscaling.maxReplicas is at least",
		"{maxTTLSeconds: 2592000}":                                        "at '/maxTTLSeconds': maximum",
		"{webhooks: {allow: [10.0.0.0]}}":                                 "at '/webhooks/allow/0'",
		"{tls: {secret: a, clientCA: {name: b}}}":                         "tls.clientCA and tls.principals need each other",
		"{tls: {clientCA: {name: b}, principals: {name: c}}}":             "tls.clientCA needs tls.secret",
		"{ingress: {enabled: true, host: a}}":                             "ingress.tlsSecret",
		"{oidc: {issuer: 'http://a.example.com'}}":                        "at '/oidc/issuer'",
		"{oidc: {issuer: 'https://a.example.com'}}":                       "oidc.clientID and oidc.principals.name",
		"{" + oidc + "}":                                                  "Set oidc.redirectURL",
		"{" + oidc + ", ingress: {enabled: true, host: a, tlsSecret: b}}": "add /dashboard and /admin",
		"{quotas: {held_locks: 0.5}}":                                     "at '/quotas/held_locks'",
		"{quotas: {webhooks: 1001}}":                                      "'/quotas/webhooks': maximum",
		"{quotas: {locks: 1}}":                                            "additional properties 'locks' not allowed",
		"{extraArgs: [max-hold-seconds]}":                                 "at '/extraArgs/0'",
		"{extraArgs: [--dev]}":                                            "extraArgs has --dev",
		"{extraArgs: ['--store=etcd://a:2379']}":                          "extraArgs has --store",
		"{extraArgs: ['--listen=0.0.0.0:1']}":                             "extraArgs has --listen",
		"{image: 'a b:v1'}":                                               "and without spaces",
		"{resources: {limits: {memory: abc}}}":                            "'/resources/limits/memory'",
		"{etcd: {members: null}}":                                         "missing property 'members'",
		"{maxTTLSeconds: null}":                                           "missing property 'maxTTLSeconds'",
		"{drain: {seconds: null}}":                                        "missing property 'seconds'",
		"{etcd: {storage: 20GB}}":                                         "etcd.storage is a number of Gi or Ti",
		"{etcd: {backup: {storage: 20}}}":                                 "at '/etcd/backup/storage'",
		"{etcd: {backup: {schedule: '99 * * * *'}}}":                      "etcd.backup.schedule",
		"{etcd: {backup: {schedule: hourly}}}":                            "etcd.backup.schedule",
		"{etcd: {backup: {schedule: '* * * *'}}}":                         "etcd.backup.schedule",
		"{webhooks: {allow: [1.2.3.4/99]}}":                               "at '/webhooks/allow/0'",
		"{webhooks: {allow: ['fd00::/129']}}":                             "at '/webhooks/allow/0'",
		"{ingress: {host: 'https://a.example.com'}}":                      "ingress.host is a name",
		"{ingress: {host: 'a b'}}":                                        "ingress.host is a name",
	} {
		out, err := template(t, "fencepost", least, values)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v%s", values, err, out)
		}
	}
	long := strings.Repeat("a", 41)
	_, err := template(t, long, least)
	if err == nil || !strings.Contains(err.Error(), "40 characters") {
		t.Errorf("a long name: %v", err)
	}
}
