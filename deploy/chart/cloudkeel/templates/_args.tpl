{{- /* `*` is all that run by default; the others are named one by one. */ -}}
{{- define "cloudkeel.controllers" -}}
{{- $names := dict "node" "cloud-node" "lifecycle" "cloud-node-lifecycle" "service" "service" "route" "route" -}}
{{- $list := list "*" -}}
{{- range $key := list "node" "lifecycle" "service" "route" -}}
{{- if not (index $.Values.controllers $key) }}{{ $list = append $list (printf "-%s" (index $names $key)) }}{{ end -}}
{{- end -}}
{{- if .Values.controllers.ipam }}{{ $list = append $list "node-ipam-controller" }}{{ end -}}
{{- if gt (len $list) 1 }}{{ join "," $list }}{{ end -}}
{{- end }}

{{- define "cloudkeel.args" -}}
{{- with .Values.provider }}
- --cloud-provider={{ . }}
{{- end }}
{{- if eq .Values.provider "hcloud" }}
- --allow-untagged-cloud
{{- end }}
{{- if eq .Values.provider "openstack" }}
- --cloud-config=/etc/cloud/cloud.conf
{{- else if include "cloudkeel.file" . }}
- --cloud-config=/etc/cloudkeel/{{ include "cloudkeel.file" . }}
{{- end }}
{{- if eq .Values.kind "StaticPod" }}
- --kubeconfig=/etc/cloudkeel/kubeconfig
- --authentication-kubeconfig=/etc/cloudkeel/kubeconfig
- --authorization-kubeconfig=/etc/cloudkeel/kubeconfig
{{- end }}
{{- if and .Values.hostNetwork (not .Values.metrics.enabled) }}
# The probes come from the same machine. For metrics, see docs/metrics.md.
- --bind-address=127.0.0.1
{{- end }}
{{- with include "cloudkeel.controllers" . }}
- --controllers={{ . }}
{{- end }}
{{- with .Values.clusterCIDR }}
- --cluster-cidr={{ . }}
{{- end }}
{{- if .Values.controllers.ipam }}
- --allocate-node-cidrs
{{- end }}
{{- if .Values.useServiceAccountCredentials }}
- --use-service-account-credentials
{{- end }}
{{- with .Values.leaderElection }}
{{- if not .enabled }}
- --leader-elect=false
{{- end }}
{{- if ne .name "cloud-controller-manager" }}
- --leader-elect-resource-name={{ .name }}
{{- end }}
{{- if ne .namespace "kube-system" }}
- --leader-elect-resource-namespace={{ .namespace }}
{{- end }}
{{- if .migration }}
- --enable-leader-migration
{{- end }}
{{- end }}
{{- if .Values.digitalocean.webhook }}
- --feature-gates=CloudControllerManagerWebhook=true
- --webhooks=digitalocean-lb-service
- --webhook-tls-cert-file=/etc/webhook/tls.crt
- --webhook-tls-private-key-file=/etc/webhook/tls.key
{{- end }}
{{- if .Values.persistentVolumeLabels }}
- --feature-gates=CloudControllerManagerWebhook=true
- --webhooks=pvlabel
- --webhook-service={{ .Release.Namespace }}/{{ include "cloudkeel.name" . }}-webhook
{{- end }}
{{- range .Values.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end }}

{{- define "cloudkeel.env" -}}
{{- if eq .Values.provider "hcloud" }}
- name: HCLOUD_TOKEN_FILE
  value: /etc/cloud/token
{{- if .Values.hcloud.network }}
- name: HCLOUD_NETWORK
  valueFrom:
    secretKeyRef:
      name: {{ include "cloudkeel.secret" . }}
      key: network
{{- end }}
{{- if .Values.hcloud.robot }}
- name: ROBOT_ENABLED
  value: "true"
- name: ROBOT_USER_FILE
  value: /etc/cloud/robot-user
- name: ROBOT_PASSWORD_FILE
  value: /etc/cloud/robot-password
{{- end }}
{{- end }}
{{- if eq .Values.provider "digitalocean" }}
- name: DO_ACCESS_TOKEN_FILE
  value: /etc/cloud/access-token
{{- end }}
{{- if and (eq .Values.provider "aws") .Values.aws.staticCredentials }}
- name: AWS_ACCESS_KEY_ID
  valueFrom:
    secretKeyRef:
      name: {{ include "cloudkeel.secret" . }}
      key: access-key-id
- name: AWS_SECRET_ACCESS_KEY
  valueFrom:
    secretKeyRef:
      name: {{ include "cloudkeel.secret" . }}
      key: secret-access-key
{{- end }}
{{- if .Values.apiServer.host }}
- name: KUBERNETES_SERVICE_HOST
  value: {{ .Values.apiServer.host | quote }}
- name: KUBERNETES_SERVICE_PORT
  value: {{ .Values.apiServer.port | quote }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}
