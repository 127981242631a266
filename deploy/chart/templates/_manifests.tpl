{{/* The text of a manifest of the repository, in the release's namespace.
     Call with (list $ "base/role.yaml"). */}}
{{- define "sluice.text" -}}
{{- $root := index . 0 -}}
{{- $root.Files.Get (printf "manifests/%s" (index . 1)) | replace "sluice-system" $root.Release.Namespace -}}
{{- end }}

{{/* Every manifest of a folder. Call with (list $ "people/*.yaml"). */}}
{{- define "sluice.folder" -}}
{{- $root := index . 0 -}}
{{- range $path, $_ := $root.Files.Glob (printf "manifests/%s" (index . 1)) }}
---
{{ include "sluice.text" (list $root (trimPrefix "manifests/" $path)) }}
{{- end }}
{{- end }}

{{/* The name of an image. Call with (list $ .Values.image). */}}
{{- define "sluice.image" -}}
{{- $image := index . 1 -}}
{{- with $image.registry }}{{ trimSuffix "/" . }}/{{ end -}}
{{- $image.repository -}}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ $image.tag | default (index . 0).Chart.AppVersion }}{{ end -}}
{{- end }}

{{/* The controller's configuration file. What follows from other values is set last. */}}
{{- define "sluice.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $_ := set $config "apiVersion" "config.sluice.dev/v1alpha1" -}}
{{- $_ := set $config "kind" "Configuration" -}}
{{- $_ := set $config "namespace" .Release.Namespace -}}
{{- if .Values.certManager.enabled -}}
{{- $_ := set $config "webhook" (merge (dict "rotateCertificates" false) ($config.webhook | default dict)) -}}
{{- end -}}
{{- toYaml $config -}}
{{- end }}

{{/* A port of the configuration, as text. Call with (list $ "metrics" "8080"). */}}
{{- define "sluice.port" -}}
{{- $part := get (index . 0).Values.config (index . 1) | default dict -}}
{{- $address := ternary (get $part "port") (get $part "bindAddress") (eq (index . 1) "webhook") -}}
{{- if $address }}{{ regexFind "[0-9]+$" (toString $address) }}{{ else }}{{ index . 2 }}{{ end -}}
{{- end }}
