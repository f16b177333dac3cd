{{- define "cloudkeel.probe" -}}
httpGet:
  {{- if .top.Values.hostNetwork }}
  host: 127.0.0.1
  {{- end }}
  path: {{ .path }}
  port: https
  scheme: HTTPS
{{- end }}

{{- define "cloudkeel.template" -}}
metadata:
  labels:
    {{- include "cloudkeel.selector" . | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .Values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- include "cloudkeel.podSpec" . | nindent 2 }}
{{- end }}

{{- define "cloudkeel.podSpec" -}}
{{- $static := eq .Values.kind "StaticPod" -}}
{{- if not $static -}}
serviceAccountName: {{ include "cloudkeel.account" . }}
automountServiceAccountToken: true
{{- else -}}
automountServiceAccountToken: false
{{- end }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
{{- toYaml . | nindent 0 }}
{{- end }}
{{- if .Values.hostNetwork }}
# It initialises the Nodes that the network of Pods is waiting for, so it cannot wait for that
# network, nor for the DNS inside it.
hostNetwork: true
dnsPolicy: Default
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
# Longer than --shutdown-grace-period (10 s) and what comes after it, at most 12 s.
terminationGracePeriodSeconds: 30
{{- if not $static }}
{{- include "cloudkeel.placement" . }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  # Lets it read the credentials, and no other user.
  fsGroup: 65532
  seccompProfile:
    type: RuntimeDefault
containers:
- name: cloudkeel
  image: {{ include "cloudkeel.image" . }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  {{- with include "cloudkeel.args" . | trim }}
  args:
  {{- . | nindent 2 }}
  {{- end }}
  {{- with include "cloudkeel.env" . | trim }}
  env:
  {{- . | nindent 2 }}
  {{- else }}
  # Where Services do not work before the network does, name an API server that does:
  # env:
  # - name: KUBERNETES_SERVICE_HOST
  #   value: api.example.internal
  # - name: KUBERNETES_SERVICE_PORT
  #   value: "6443"
  {{- end }}
  ports:
  - name: https
    containerPort: 10258
  {{- if .Values.digitalocean.webhook }}
  - name: webhook
    containerPort: 10260
  {{- end }}
  startupProbe:
    {{- include "cloudkeel.probe" (dict "top" . "path" "/livez") | nindent 4 }}
    periodSeconds: 2
    timeoutSeconds: 5
    failureThreshold: 60
  livenessProbe:
    {{- include "cloudkeel.probe" (dict "top" . "path" "/livez") | nindent 4 }}
    periodSeconds: 10
    timeoutSeconds: 15
    failureThreshold: 6
  readinessProbe:
    {{- include "cloudkeel.probe" (dict "top" . "path" "/readyz") | nindent 4 }}
    periodSeconds: 5
    timeoutSeconds: 5
  resources:
    {{- toYaml .Values.resources | nindent 4 }}
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities:
      drop: [ALL]
  {{- with include "cloudkeel.mounts" . | trim }}
  volumeMounts:
  {{- . | nindent 2 }}
  {{- end }}
{{- with include "cloudkeel.volumes" . | trim }}
volumes:
{{- . | nindent 0 }}
{{- end }}
{{- end }}

{{- define "cloudkeel.placement" }}
{{- if or .Values.controlPlaneOnly (eq .Values.kind "Deployment") }}
affinity:
  {{- if .Values.controlPlaneOnly }}
  nodeAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms:
      - matchExpressions:
        - key: node-role.kubernetes.io/control-plane
          operator: Exists
  {{- end }}
  {{- if eq .Values.kind "Deployment" }}
  # One machine, one port: a second replica on it could not serve, and would fall with it.
  podAntiAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
    - labelSelector:
        matchLabels:
          {{- include "cloudkeel.selector" . | nindent 10 }}
      topologyKey: kubernetes.io/hostname
  {{- end }}
{{- end }}
{{- if and (eq .Values.kind "Deployment") .Values.topologySpreadConstraints }}
topologySpreadConstraints:
{{- range .Values.topologySpreadConstraints }}
- labelSelector:
    matchLabels:
      {{- include "cloudkeel.selector" $ | nindent 6 }}
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
tolerations:
# The taint that it is there to remove.
- key: node.cloudprovider.kubernetes.io/uninitialized
  operator: Exists
  effect: NoSchedule
# Without a network of Pods, which may wait for it, no Node is ready.
- key: node.kubernetes.io/not-ready
  operator: Exists
  effect: NoSchedule
- key: node.kubernetes.io/not-ready
  operator: Exists
  effect: NoExecute
# In clouds that route Pods, it is the one who makes the network available.
- key: node.kubernetes.io/network-unavailable
  operator: Exists
  effect: NoSchedule
- key: node-role.kubernetes.io/control-plane
  operator: Exists
- key: node-role.kubernetes.io/master
  operator: Exists
- key: CriticalAddonsOnly
  operator: Exists
{{- with .Values.extraTolerations }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* vSphere's Secret is read through the API, by its name in vsphere.conf. */ -}}
{{- define "cloudkeel.mountsSecret" -}}
{{- if and (include "cloudkeel.secret" .) (not (has .Values.provider (list "aws" "vsphere"))) }}yes{{ end -}}
{{- end }}

{{- define "cloudkeel.mounts" -}}
{{- if or (include "cloudkeel.file" .) (eq .Values.kind "StaticPod") }}
- name: config
  mountPath: /etc/cloudkeel
  readOnly: true
{{- end }}
{{- if include "cloudkeel.mountsSecret" . }}
- name: credentials
  mountPath: /etc/cloud
  readOnly: true
{{- end }}
{{- if .Values.digitalocean.webhook }}
- name: webhook
  mountPath: /etc/webhook
  readOnly: true
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "cloudkeel.volumes" -}}
{{- if eq .Values.kind "StaticPod" }}
# A static Pod can name no ConfigMap, Secret or account: it has files of its machine.
- name: config
  hostPath:
    path: {{ .Values.staticPod.folder }}
    type: Directory
{{- else if include "cloudkeel.file" . }}
- name: config
  configMap:
    name: {{ include "cloudkeel.configMap" . }}
{{- end }}
{{- if include "cloudkeel.mountsSecret" . }}
- name: credentials
  {{- if eq .Values.kind "StaticPod" }}
  hostPath:
    path: {{ .Values.staticPod.folder }}/credentials
    type: Directory
  {{- else }}
  secret:
    secretName: {{ include "cloudkeel.secret" . }}
    # 0440, which YAML 1.1 and 1.2 read differently.
    defaultMode: 288
  {{- end }}
{{- end }}
{{- if .Values.digitalocean.webhook }}
- name: webhook
  secret:
    secretName: digitalocean-cloud-controller-manager-admission-server-serving-certs
    defaultMode: 288
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}
