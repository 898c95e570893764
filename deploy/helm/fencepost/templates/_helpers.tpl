{{/* fencepost.selector: the labels that select the pods of a component: list root component. */}}
{{- define "fencepost.selector" -}}
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/name: {{ index . 1 }}
{{- end }}

{{/* fencepost.labels: the labels of an object of a component: list root component. */}}
{{- define "fencepost.labels" -}}
{{- $own := fromYaml (include "fencepost.selector" .) -}}
{{- $_ := set $own "app.kubernetes.io/part-of" "fencepost" -}}
{{ toYaml (merge $own (index . 0).Values.labels) }}
{{- end }}

{{/* fencepost.metadata: metadata of an object: list root component name. */}}
{{- define "fencepost.metadata" -}}
name: {{ index . 2 }}
namespace: {{ (index . 0).Release.Namespace }}
labels:
  {{- include "fencepost.labels" . | nindent 2 }}
{{- end }}

{{- define "fencepost.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "fencepost.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* With TLS, probes and Prometheus have a port of their own without it: neither knows a pod by the
     name in its certificate. */}}
{{- define "fencepost.scheme" -}}{{ if .Values.tls.secret }}https{{ else }}http{{ end }}{{- end }}
{{- define "fencepost.opsPort" -}}{{ if .Values.tls.secret }}ops{{ else }}http{{ end }}{{- end }}
{{- define "fencepost.port" -}}{{ if .Values.tls.secret }}443{{ else }}80{{ end }}{{- end }}

{{- define "fencepost.etcd.scheme" -}}{{ if .Values.etcd.tlsSecret }}https{{ else }}http{{ end }}{{- end }}
{{- define "fencepost.etcd.peerScheme" -}}{{ if .Values.etcd.peerTLSSecret }}https{{ else }}http{{ end }}{{- end }}
{{- define "fencepost.etcd.domain" -}}{{ .Release.Name }}-etcd.{{ .Release.Namespace }}.svc{{- end }}
{{- define "fencepost.etcd.backupClaim" -}}{{ .Values.etcd.backup.claim | default (printf "%s-backup" .Release.Name) }}{{- end }}

{{/* fencepost.etcd.peers: --initial-cluster. */}}
{{- define "fencepost.etcd.peers" -}}
{{- $peers := list -}}
{{- range $i := until (int .Values.etcd.members) -}}
{{- $name := printf "%s-etcd-%d" $.Release.Name $i -}}
{{- $peers = append $peers (printf "%s=%s://%s.%s:2380" $name (include "fencepost.etcd.peerScheme" $) $name (include "fencepost.etcd.domain" $)) -}}
{{- end -}}
{{- join "," $peers -}}
{{- end }}

{{/* fencepost.store: the values of store, also if it is the chart's etcd. */}}
{{- define "fencepost.store" -}}
{{- if .Values.etcd.enabled -}}
{{- $hosts := list -}}
{{- range $i := until (int .Values.etcd.members) -}}
{{- $hosts = append $hosts (printf "%s-etcd-%d.%s:2379" $.Release.Name $i (include "fencepost.etcd.domain" $)) -}}
{{- end -}}
address: etcd://{{ join "," $hosts }}
caSecret: {{ .Values.etcd.tlsSecret | quote }}
clientTLSSecret: {{ .Values.etcd.tlsSecret | quote }}
username: ""
passwordSecret: {name: "", key: ""}
{{- else -}}
{{ toYaml .Values.store }}
{{- end }}
{{- end }}
