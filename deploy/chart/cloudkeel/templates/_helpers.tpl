{{- define "cloudkeel.name" -}}
{{ .Values.nameOverride | default "cloudkeel" }}
{{- end }}

{{- define "cloudkeel.selector" -}}
app.kubernetes.io/name: {{ include "cloudkeel.name" . }}
{{- end }}

{{- define "cloudkeel.labels" -}}
{{ include "cloudkeel.selector" . }}
{{- with .Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "cloudkeel.account" -}}
{{ .Values.serviceAccount.name | default (include "cloudkeel.name" .) }}
{{- end }}

{{- define "cloudkeel.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end }}

{{- /* Which Secret is mounted at /etc/cloud; empty for none. */ -}}
{{- define "cloudkeel.secret" -}}
{{- if .Values.existingSecret -}}
{{ .Values.existingSecret }}
{{- else if not .Values.provider -}}
cloudkeel-credentials
{{- else -}}
{{ dict "digitalocean" "digitalocean" "hcloud" "hcloud" "openstack" "cloud-config" "vsphere" "vsphere-cloud-secret" "aws" (ternary "aws-cloud-credentials" "" .Values.aws.staticCredentials) | dig .Values.provider "" }}
{{- end -}}
{{- end }}

{{- /* The file of --cloud-config; empty for none. */ -}}
{{- define "cloudkeel.file" -}}
{{- if not .Values.provider -}}
clouds.yaml
{{- else if or .Values.cloudConfig .Values.existingConfigMap -}}
{{ ternary "vsphere.conf" "cloud.conf" (eq .Values.provider "vsphere") }}
{{- end -}}
{{- end }}

{{- define "cloudkeel.configMap" -}}
{{ .Values.existingConfigMap | default (include "cloudkeel.name" .) }}
{{- end }}

{{- define "cloudkeel.metadata" -}}
name: {{ include "cloudkeel.name" . }}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "cloudkeel.labels" . | nindent 2 }}
{{- end }}

{{- /* Who the roles are for. */ -}}
{{- define "cloudkeel.subjects" -}}
subjects:
{{- if eq .Values.kind "StaticPod" }}
- apiGroup: rbac.authorization.k8s.io
  kind: User
  name: {{ .Values.staticPod.user }}
{{- else }}
- kind: ServiceAccount
  name: {{ include "cloudkeel.account" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}
{{- end }}

{{- /* The head of a role, and its binding: a dict of `top`, `name` and, unless it holds everywhere, `namespace`. */ -}}
{{- define "cloudkeel.role" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ ternary "Role" "ClusterRole" (hasKey . "namespace") }}
metadata:
  name: {{ include "cloudkeel.name" .top }}:{{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "cloudkeel.labels" .top | nindent 4 }}
{{- end }}

{{- define "cloudkeel.binding" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ ternary "Role" "ClusterRole" (hasKey . "namespace") }}Binding
metadata:
  name: {{ include "cloudkeel.name" .top }}:{{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "cloudkeel.labels" .top | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .roleKind | default (ternary "Role" "ClusterRole" (hasKey . "namespace")) }}
  name: {{ .role | default (printf "%s:%s" (include "cloudkeel.name" .top) .name) }}
{{ include "cloudkeel.subjects" .top }}
{{- end }}
