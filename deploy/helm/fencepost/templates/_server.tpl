{{/* fencepost.args: what the server is started with: a flag for each value. */}}
{{- define "fencepost.args" -}}
{{- $store := fromYaml (include "fencepost.store" .) -}}
{{- with .Values -}}
- --listen=0.0.0.0:8080
{{- if .tls.secret }}
- --ops-listen=0.0.0.0:9090
{{- end }}
- {{ printf "--store=%s" $store.address | quote }}
{{- if $store.caSecret }}
- --store-ca=/etc/fencepost/store-ca/ca.crt
{{- end }}
{{- if $store.clientTLSSecret }}
- --store-cert=/etc/fencepost/store-tls/tls.crt
- --store-key=/etc/fencepost/store-tls/tls.key
{{- end }}
{{- if $store.username }}
- {{ printf "--store-username=%s" $store.username | quote }}
- --store-password-file=/etc/fencepost/store-password/password
{{- end }}
{{- if .tls.secret }}
- --tls-cert=/etc/fencepost/tls/tls.crt
- --tls-key=/etc/fencepost/tls/tls.key
{{- end }}
{{- if .tls.clientCA.name }}
- --client-ca=/etc/fencepost/client-ca/ca.crt
- {{ printf "--principals=/etc/fencepost/principals/%s" .tls.principals.key | quote }}
{{- end }}
{{- if .auth.jwtSecret.name }}
- --jwt-secret-file=/etc/fencepost/jwt/secret
{{- end }}
{{- with .auth.jwks }}
- {{ printf "--jwks=%s" . | quote }}
{{- end }}
{{- with .auth.issuer }}
- {{ printf "--jwt-issuer=%s" . | quote }}
{{- end }}
{{- with .auth.audience }}
- {{ printf "--jwt-audience=%s" . | quote }}
{{- end }}
{{- if .tokenKeySecret.name }}
- --token-key-file=/etc/fencepost/token-key/key
{{- end }}
- --max-ttl-seconds={{ int64 .maxTTLSeconds }}
- --drain-delay-seconds={{ int64 .drain.delaySeconds }}
- --drain-seconds={{ int64 .drain.seconds }}
- --log-level={{ .logLevel }}
{{- with .trustedProxyHops }}
- --trusted-proxy-hops={{ int64 . }}
{{- end }}
{{- with .webhooks.allow }}
- --webhook-allow={{ join "," . }}
{{- end }}
{{- if .webhooks.allowHTTP }}
- --webhook-allow-http
{{- end }}
{{- with .webhooks.ports }}
- --webhook-ports={{ join "," . }}
{{- end }}
{{- if .oidc.issuer }}
- {{ include "fencepost.oidc" $ | quote }}
{{- end }}
{{- if .quotas }}
{{- $quotas := list }}
{{- range $name, $n := .quotas }}{{ $quotas = append $quotas (printf "%s=%d" $name (int64 $n)) }}{{ end }}
- --default-quotas={{ join "," $quotas }}
{{- end }}
{{- range .extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end }}
{{- end }}

{{- define "fencepost.oidc" -}}
{{- with .Values.oidc -}}
--oidc=issuer={{ .issuer }},client_id={{ .clientID }}
{{- if .clientSecret.name }},client_secret_file=/etc/fencepost/oidc/secret{{ end -}}
,principals=/etc/fencepost/oidc-principals/{{ .principals.key -}}
,redirect_url={{ .redirectURL | default (printf "https://%s/dashboard/sign-in/oidc/callback" $.Values.ingress.host) }}
{{- with .nameClaim }},name_claim={{ . }}{{ end }}
{{- with .scopes }},scopes={{ join " " . }}{{ end }}
{{- end }}
{{- end }}

{{/* fencepost.volumes: the files that fencepost.args names, each of a Secret or a ConfigMap below
     /etc/fencepost/NAME. The group of the pod reads the secret ones. */}}
{{- define "fencepost.volumes" -}}
{{- $store := fromYaml (include "fencepost.store" .) -}}
{{- with .Values -}}
{{- $pair := dict "tls.crt" "tls.crt" "tls.key" "tls.key" -}}
{{- include "fencepost.secret" (list "client-ca" .tls.clientCA.name (dict .tls.clientCA.key "ca.crt")) -}}
{{- include "fencepost.secret" (list "jwt" .auth.jwtSecret.name (dict .auth.jwtSecret.key "secret")) -}}
{{- include "fencepost.secret" (list "oidc" .oidc.clientSecret.name (dict .oidc.clientSecret.key "secret")) -}}
{{- include "fencepost.secret" (list "store-ca" $store.caSecret (dict "ca.crt" "ca.crt")) -}}
{{- include "fencepost.secret" (list "store-password" $store.passwordSecret.name (dict $store.passwordSecret.key "password")) -}}
{{- include "fencepost.secret" (list "store-tls" $store.clientTLSSecret $pair) -}}
{{- include "fencepost.secret" (list "tls" .tls.secret $pair) -}}
{{- include "fencepost.secret" (list "token-key" .tokenKeySecret.name (dict .tokenKeySecret.key "key")) -}}
{{- include "fencepost.configMap" (list "oidc-principals" .oidc.principals) -}}
{{- include "fencepost.configMap" (list "principals" .tls.principals) -}}
{{- end }}
{{- end }}

{{/* fencepost.secret: a volume of a Secret, if it has a name: list volume secret files. */}}
{{- define "fencepost.secret" -}}
{{- if index . 1 }}
- name: {{ index . 0 }}
  secret:
    secretName: {{ index . 1 | quote }}
    defaultMode: 0440
    items:
      {{- range $key, $path := index . 2 }}
      - key: {{ $key | quote }}
        path: {{ $path | quote }}
      {{- end }}
{{- end }}
{{- end }}

{{/* fencepost.configMap: a volume of one file of a ConfigMap: list volume (name, key). */}}
{{- define "fencepost.configMap" -}}
{{- with index . 1 }}{{ if .name }}
- name: {{ index $ 0 }}
  configMap:
    name: {{ .name | quote }}
    defaultMode: 0444
    items:
      - key: {{ .key | quote }}
        path: {{ .key | quote }}
{{- end }}{{ end }}
{{- end }}
