{{/* fencepost.checks: what the schema cannot say, in words. */}}
{{- define "fencepost.checks" -}}
{{- with .Values -}}
{{- if gt (len $.Release.Name) 40 -}}
{{- fail "The name of the release has at most 40 characters: names of jobs are made of it." -}}
{{- end -}}
{{- if or (not (regexMatch "^\\S+(:[A-Za-z0-9_][A-Za-z0-9._-]*|@sha256:[0-9a-f]{64})$" .image)) (hasSuffix ":latest" .image) -}}
{{- fail "Set image, with a tag other than latest or a digest, and without spaces: all replicas run the same version." -}}
{{- end -}}
{{- if not (or .auth.jwtSecret.name .auth.jwks) -}}
{{- fail "Set auth.jwtSecret.name or auth.jwks: without a key for bearer tokens the server does not start." -}}
{{- end -}}
{{- if and .auth.jwks (not (and .auth.issuer .auth.audience)) -}}
{{- fail "auth.jwks needs auth.issuer and auth.audience: otherwise the server accepts tokens for other services." -}}
{{- end -}}
{{- if ne (empty .tls.clientCA.name) (empty .tls.principals.name) -}}
{{- fail "tls.clientCA and tls.principals need each other: the authorities of certificates, and their principals." -}}
{{- end -}}
{{- if and .tls.clientCA.name (not .tls.secret) -}}
{{- fail "tls.clientCA needs tls.secret: only a server with TLS sees certificates of clients." -}}
{{- end -}}
{{- if eq (empty .store.address) (not .etcd.enabled) -}}
{{- fail "Set exactly one store: etcd.enabled=false with store.address, or neither." -}}
{{- end -}}
{{- with .store.address -}}
{{- range splitList "," (index (splitList "/" .) 2) -}}
{{- $port := regexFind ":[0-9]+$" . | trimPrefix ":" | int -}}
{{- if or (lt $port 1) (gt $port 65535) -}}
{{- fail (printf "store.address: %s has no port of 1 to 65535." .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if ne (empty .store.username) (empty .store.passwordSecret.name) -}}
{{- fail "store.username and store.passwordSecret need each other." -}}
{{- end -}}
{{- range $name, $size := dict "etcd.storage" .etcd.storage "etcd.backup.storage" .etcd.backup.storage -}}
{{- if not (regexMatch "^[1-9][0-9]*[GT]i$" $size) -}}
{{- fail (printf "%s is a number of Gi or Ti, such as 20Gi." $name) -}}
{{- end -}}
{{- end -}}
{{- $storage := mul (regexFind "^[0-9]+" .etcd.storage | int64) (ternary 1048576 1024 (hasSuffix "Ti" .etcd.storage)) -}}
{{- if lt $storage (mul 2 (int64 .etcd.quotaMiB)) -}}
{{- fail "etcd.storage is at least twice etcd.quotaMiB: defragmentation writes a second copy." -}}
{{- end -}}
{{- $fields := list -}}
{{- range list "[0-5]?[0-9]" "([01]?[0-9]|2[0-3])" "(0?[1-9]|[12][0-9]|3[01])" "(0?[1-9]|1[0-2]|[A-Za-z]{3})" "([0-6]|[A-Za-z]{3})" -}}
{{- $part := printf "([*?]|%s(-%s)?)(/[1-9][0-9]*)?" . . -}}
{{- $fields = append $fields (printf "%s(,%s)*" $part $part) -}}
{{- end -}}
{{- $often := "@(hourly|daily|midnight|weekly|monthly|yearly|annually|every [0-9a-z.]+)" -}}
{{- if not (regexMatch (printf "^(%s|%s)$" $often (join " +" $fields)) .etcd.backup.schedule) -}}
{{- fail "etcd.backup.schedule has minute, hour, day, month and day of the week (17 * * * *), or is @hourly, @daily, ..." -}}
{{- end -}}
{{- if and .autoscaling.enabled (lt (int .autoscaling.maxReplicas) (int .replicas)) -}}
{{- fail "autoscaling.maxReplicas is at least replicas." -}}
{{- end -}}
{{- if and .ingress.enabled (not (and .ingress.host .ingress.tlsSecret)) -}}
{{- fail "ingress needs ingress.host and ingress.tlsSecret." -}}
{{- end -}}
{{- if and .ingress.host (not (regexMatch "^(\\*\\.)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?$" .ingress.host)) -}}
{{- fail "ingress.host is a name such as locks.example.com, without https:// and without a port." -}}
{{- end -}}
{{- if .oidc.issuer -}}
{{- if not (and .oidc.clientID .oidc.principals.name) -}}
{{- fail "oidc needs oidc.clientID and oidc.principals.name." -}}
{{- end -}}
{{- if not (or .oidc.redirectURL .ingress.enabled) -}}
{{- fail "Set oidc.redirectURL to https://host/dashboard/sign-in/oidc/callback: there is no ingress." -}}
{{- end -}}
{{- if and (not .oidc.redirectURL) (not (has "/dashboard" .ingress.paths)) -}}
{{- fail "oidc leads back to the ingress: add /dashboard and /admin to ingress.paths." -}}
{{- end -}}
{{- end -}}
{{- $names := list "--dev" -}}
{{- range fromYamlArray (include "fencepost.args" $) -}}
{{- $name := regexFind "^--[a-z-]+" . -}}
{{- if has $name $names -}}
{{- fail (printf "extraArgs has %s: the chart sets it, or it is for development, or it is there twice." $name) -}}
{{- end -}}
{{- $names = append $names $name -}}
{{- end -}}
{{- end -}}
{{- end }}
