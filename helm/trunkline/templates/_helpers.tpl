{{/* Its label has room for the end of that of the test pod. */}}
{{- define "trunkline.name" -}}
{{- default .Chart.Name .Values.nameOverride }}
{{- end }}

{{/* Of a Service, too: a letter first, and no dots, which a release may have in its name. */}}
{{- define "trunkline.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride }}
{{- else }}
{{- $name := include "trunkline.name" . }}
{{- $full := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) }}
{{- $full = $full | replace "." "-" | trunc 50 | regexFind "^.*[^-]" }}
{{- if not (regexMatch "^[a-z]" $full) }}
{{- fail (printf "a Service cannot be called %s: set fullnameOverride, which begins with a letter" $full) }}
{{- end }}
{{- $full }}
{{- end }}
{{- end }}

{{/* These never change in a release: selectors cannot. */}}
{{- define "trunkline.selectorLabels" -}}
app.kubernetes.io/name: {{ include "trunkline.name" . | toYaml }}
app.kubernetes.io/instance: {{ toYaml .Release.Name }}
{{- end }}

{{- define "trunkline.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "trunkline.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "trunkline.serviceAccountName" -}}
{{- $default := ternary (include "trunkline.fullname" .) "default" .Values.serviceAccount.create }}
{{- default $default .Values.serviceAccount.name }}
{{- end }}

{{- define "trunkline.secretName" -}}
{{- default (include "trunkline.fullname" .) .Values.existingSecret }}
{{- end }}

{{/* Whether the chart reads a Secret at all: "true" or nothing. */}}
{{- define "trunkline.needsSecret" -}}
{{- if or (eq .Values.auth.mode "token") .Values.signingKey.enabled }}true{{ end }}
{{- end }}

{{- define "trunkline.image" -}}
{{- $tag := default .Chart.AppVersion .Values.image.tag }}
{{- if eq .Values.image.variant "full" }}{{ $tag = printf "%s-full" $tag }}{{ end }}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository $tag }}
{{- end }}
{{- end }}

{{/* More than one replica, now or later: "true" or nothing. */}}
{{- define "trunkline.isReplicated" -}}
{{- if or .Values.autoscaling.enabled (gt (int .Values.replicaCount) 1) }}true{{ end }}
{{- end }}

{{/* The paths that clients ask for: the endpoint, and those of HTTP+SSE and WebSocket unless they are switched off. */}}
{{- define "trunkline.paths" -}}
{{- $paths := list .Values.path }}
{{- if dig "server" "legacy_sse" true .Values.config }}{{ $paths = concat $paths (list "/sse" "/message") }}{{ end }}
{{- if dig "server" "websocket" true .Values.config }}{{ $paths = append $paths "/ws" }}{{ end }}
{{- toJson $paths }}
{{- end }}

{{/* A value as TOML: what toToml makes of a whole number is no whole number. */}}
{{- define "trunkline.toml" -}}
{{- if kindIs "map" . }}
{{- $pairs := list }}
{{- range $key, $value := . }}
{{- $pairs = append $pairs (printf "%s = %s" (toRawJson $key) (include "trunkline.toml" $value)) }}
{{- end }}
{{- if $pairs }}{{ printf "{ %s }" (join ", " $pairs) }}{{ else }}{}{{ end }}
{{- else if kindIs "slice" . }}
{{- $items := list }}
{{- range . }}{{ $items = append $items (include "trunkline.toml" .) }}{{ end }}
{{- printf "[%s]" (join ", " $items) }}
{{- else if kindIs "invalid" . }}
{{- fail "config: a key has no value" }}
{{- else }}
{{- toRawJson . }}
{{- end }}
{{- end }}

{{/* Tables as headings down to upstreams.NAME; what lies deeper stands in one line. */}}
{{- define "trunkline.tomlTables" -}}
{{- $prefix := .prefix }}
{{- $tables := dict }}
{{- range $key, $value := .map }}
{{- if and (kindIs "map" $value) (lt $.depth 2) }}
{{- $_ := set $tables $key $value }}
{{- else }}
{{ regexMatch "^[A-Za-z0-9_-]+$" $key | ternary $key (toRawJson $key) }} = {{ include "trunkline.toml" $value }}
{{- end }}
{{- end }}
{{- range $key, $value := $tables }}
{{- $path := regexMatch "^[A-Za-z0-9_-]+$" $key | ternary $key (toRawJson $key) }}
{{- if $prefix }}{{ $path = printf "%s.%s" $prefix $path }}{{ end }}

[{{ $path }}]
{{- include "trunkline.tomlTables" (dict "prefix" $path "map" $value "depth" (add1 $.depth)) }}
{{- end }}
{{- end }}

{{- define "trunkline.config" -}}
{{- if .Values.configToml }}
{{- .Values.configToml }}
{{- else }}
{{- include "trunkline.tomlTables" (dict "prefix" "" "map" .Values.config "depth" 0) | trim }}
{{- end }}
{{- end }}

{{/* What the chart answers for: it is read last, so path and grace are those of the other objects. */}}
{{- define "trunkline.chartConfig" -}}
[server]
path = {{ toRawJson .Values.path }}

[server.shutdown]
pre_stop_delay = "{{ .Values.shutdown.preStopDelay }}s"
grace = "{{ .Values.shutdown.grace }}s"
{{- $stateless := eq .Values.sessions.affinity "stateless" }}

[server.session]
resume_upstream = {{ .Values.sessions.resumeUpstream }}
{{- if $stateless }}
required = false
{{- end }}
{{- if .Values.signingKey.enabled }}
signing_key = "${TRUNKLINE_SIGNING_KEY}"
{{- end }}
{{- if eq .Values.auth.mode "token" }}

[[auth.tokens]]
name = "chart"
token = "${TRUNKLINE_TOKEN}"
{{- else if eq .Values.auth.mode "none" }}

[auth]
allow_unauthenticated = true
{{- end }}
{{- end }}

{{/* The least that a pod needs to end: what still serves, what finishes, what is stopped. */}}
{{- define "trunkline.terminationGrace" -}}
{{- $least := add .Values.shutdown.preStopDelay .Values.shutdown.grace 10 }}
{{- $given := .Values.shutdown.terminationGracePeriodSeconds }}
{{- if kindIs "invalid" $given }}{{ $least }}
{{- else if lt (int $given) (int $least) }}
{{- fail (printf "shutdown.terminationGracePeriodSeconds is %d: preStopDelay + grace + 10 is %d" (int $given) (int $least)) }}
{{- else }}{{ $given }}
{{- end }}
{{- end }}

{{/* The files of the configuration in their order, for `args`. */}}
{{- define "trunkline.configFlags" -}}
--config, /etc/trunkline/config.toml, --config, /etc/trunkline/chart.toml
{{- end }}

{{/* The common part of the containers `check` and `trunkline`, so that `check` finds the files and variables of `trunkline`. */}}
{{- define "trunkline.container" -}}
image: {{ include "trunkline.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
env:
  - name: HOME
    value: /var/lib/trunkline
  {{- if .Values.storage.stateClaim }}
  - name: XDG_STATE_HOME
    value: /var/lib/trunkline-state
  # The control socket stays in the pod: not every volume has sockets.
  - name: XDG_RUNTIME_DIR
    value: /tmp
  {{- end }}
  # Over all files, so the ports are those of probes and Services.
  - name: TRUNKLINE_SERVER__LISTEN
    value: {{ printf "%s:8808" .Values.listenAddress | quote }}
  - name: TRUNKLINE_ADMIN__LISTEN
    value: {{ printf "%s:9808" .Values.listenAddress | quote }}
  {{- if eq .Values.auth.mode "token" }}
  - name: TRUNKLINE_TOKEN
    valueFrom:
      secretKeyRef:
        name: {{ include "trunkline.secretName" . | toYaml }}
        key: {{ toYaml .Values.secretKeys.token }}
  {{- end }}
  {{- if .Values.signingKey.enabled }}
  - name: TRUNKLINE_SIGNING_KEY
    valueFrom:
      secretKeyRef:
        name: {{ include "trunkline.secretName" . | toYaml }}
        key: {{ toYaml .Values.secretKeys.signingKey }}
  {{- end }}
  {{- with .Values.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .Values.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
resources:
  {{- toYaml .Values.resources | nindent 2 }}
volumeMounts:
  - name: config
    mountPath: /etc/trunkline
    readOnly: true
  - name: home
    mountPath: /var/lib/trunkline
  {{- if .Values.storage.stateClaim }}
  - name: state
    mountPath: /var/lib/trunkline-state
  {{- end }}
  - name: tmp
    mountPath: /tmp
  {{- with .Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* Values that are right one by one and wrong together. */}}
{{- define "trunkline.validate" -}}
{{- $ways := list }}
{{- if .Values.config }}{{ $ways = append $ways "config" }}{{ end }}
{{- if .Values.configToml }}{{ $ways = append $ways "configToml" }}{{ end }}
{{- if .Values.existingConfigMap }}{{ $ways = append $ways "existingConfigMap" }}{{ end }}
{{- if gt (len $ways) 1 }}
{{- fail (printf "the configuration is given twice: %s" (join ", " $ways)) }}
{{- end }}
{{- $owned := dict "server.listen" "listenAddress" "server.path" "path" "server.shutdown" "shutdown" "server.session.resume_upstream" "sessions.resumeUpstream" "admin.listen" "listenAddress" }}
{{- if .Values.signingKey.enabled }}{{ $_ := set $owned "server.session.signing_key" "signingKey.enabled" }}{{ end }}
{{- if ne .Values.auth.mode "config" }}{{ $_ := set $owned "auth" "auth.mode" }}{{ end }}
{{- if eq .Values.sessions.affinity "stateless" }}{{ $_ := set $owned "server.session.required" "sessions.affinity" }}{{ end }}
{{- range $key, $value := $owned }}
{{- $at := $.Values.config }}
{{- range splitList "." $key }}
{{- if kindIs "map" $at }}{{ $at = index $at . }}{{ else }}{{ $at = "" }}{{ end }}
{{- end }}
{{- if $at }}{{ fail (printf "config: the chart writes %s itself, by the value `%s`" $key $value) }}{{ end }}
{{- end }}
{{- $written := list "TRUNKLINE_SERVER__LISTEN" "TRUNKLINE_SERVER__PATH" "TRUNKLINE_ADMIN__LISTEN" "HOME" "XDG_STATE_HOME" "XDG_RUNTIME_DIR" }}
{{- if eq .Values.auth.mode "token" }}{{ $written = append $written "TRUNKLINE_TOKEN" }}{{ end }}
{{- if .Values.signingKey.enabled }}{{ $written = append $written "TRUNKLINE_SIGNING_KEY" }}{{ end }}
{{- range .Values.extraEnv }}
{{- $name := toString .name }}
{{- if or (has $name $written) (hasPrefix "TRUNKLINE_SERVER__SHUTDOWN__" $name) }}
{{- fail (printf "extraEnv: %s is the chart's own, or goes over what the chart writes" $name) }}
{{- end }}
{{- end }}
{{- $own := list "helm.sh/chart" "app.kubernetes.io/component" "app.kubernetes.io/instance" "app.kubernetes.io/managed-by" "app.kubernetes.io/name" "app.kubernetes.io/version" }}
{{- $common := .Values.commonLabels }}
{{- range $what, $labels := dict "commonLabels" $common "podLabels" .Values.podLabels "service.labels" .Values.service.labels "metrics.serviceMonitor.labels" .Values.metrics.serviceMonitor.labels "metrics.prometheusRule.labels" .Values.metrics.prometheusRule.labels "metrics.dashboard.labels" .Values.metrics.dashboard.labels }}
{{- range $name, $_ := $labels }}
{{- if has $name $own }}{{ fail (printf "%s: %s is a label of the chart itself" $what $name) }}{{ end }}
{{- if and (ne $what "commonLabels") (hasKey $common $name) }}{{ fail (printf "%s: %s is one of the commonLabels, too" $what $name) }}{{ end }}
{{- end }}
{{- end }}
{{- if and .Values.restartOnConfigChange (hasKey .Values.podAnnotations "checksum/config") }}
{{- fail "podAnnotations: checksum/config is written by the chart, by the value `restartOnConfigChange`" }}
{{- end }}
{{- if eq .Values.secretKeys.token .Values.secretKeys.signingKey }}
{{- fail "secretKeys: token and signingKey are the same key; whoever may call could make sessions" }}
{{- end }}
{{- if and (eq .Values.auth.mode "config") .Values.config (not (dig "auth" dict .Values.config)) }}
{{- fail "auth.mode is config, and `config` has no `auth`: nobody could call" }}
{{- end }}
{{- if and .Values.ingress.enabled (not .Values.ingress.hosts) }}
{{- fail "ingress.enabled needs ingress.hosts" }}
{{- end }}
{{- if and .Values.httpRoute.enabled (not .Values.httpRoute.parentRefs) }}
{{- fail "httpRoute.enabled needs httpRoute.parentRefs" }}
{{- end }}
{{- if .Values.autoscaling.enabled }}
{{- if gt (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas) }}
{{- fail "autoscaling.minReplicas is more than maxReplicas" }}
{{- end }}
{{- if not (or .Values.autoscaling.targetCPU .Values.autoscaling.targetInflight) }}
{{- fail "autoscaling needs targetCPU or targetInflight" }}
{{- end }}
{{- end }}
{{- if include "trunkline.isReplicated" . }}
{{- if .Values.storage.stateClaim }}
{{- fail "storage.stateClaim is for one replica: two gateways do not share a state folder" }}
{{- end }}
{{- if not (or .Values.signingKey.enabled (dig "server" "session" "signing_key" "" .Values.config) .Values.configToml .Values.existingConfigMap) }}
{{- fail "several replicas need one signing key: signingKey.enabled, or [server.session] signing_key" }}
{{- end }}
{{- if and (eq .Values.sessions.affinity "session-id") (not (and .Values.ingress.enabled (ne .Values.ingress.controller "other"))) }}
{{- fail "sessions.affinity is session-id: only an Ingress with a known `ingress.controller` (ingress-nginx, nginx, haproxy) leads requests by it" }}
{{- end }}
{{- end }}
{{- end }}
