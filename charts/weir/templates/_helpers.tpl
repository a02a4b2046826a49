{{- /* weir.image is an image reference: (list $ repository digest). A digest identifies the image; the tag is for readers. */}}
{{- define "weir.image" -}}
{{- $root := index . 0 -}}
{{- printf "%s:%s" (index . 1) $root.Values.image.tag -}}{{- with index . 2 }}@{{ . }}{{ end -}}
{{- end }}

{{- /* weir.pullPolicy is a field of a container. */}}
{{- define "weir.pullPolicy" }}
{{- with .Values.image.pullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
{{- end }}

{{- /* weir.placement are the fields that all pods have: where they run, and how their image is pulled. */}}
{{- define "weir.placement" }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* weir.podSecurity is the security context of all pods. */}}
{{- define "weir.podSecurity" }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{- /* weir.containerSecurity is the security context of all containers. */}}
{{- define "weir.containerSecurity" }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end }}

{{- /* weir.env are the environment variables of a container: (list goMemLimit env). */}}
{{- define "weir.env" }}
env:
  - {name: GOMEMLIMIT, value: {{ index . 0 | quote }}}
  {{- with index . 1 }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- /* weir.clusterFlags are the flags of clusterName and loadBalancerClass, unless these are the program's defaults. */}}
{{- define "weir.clusterFlags" }}
{{- range .Values.extraArgs }}
{{- if and (or (hasPrefix "--cluster-name=" .) (eq . "--cluster-name")) (ne $.Values.clusterName "kubernetes") }}
{{- fail (printf "extraArgs has %s, and clusterName is %q: remove one" . $.Values.clusterName) }}
{{- end }}
{{- if and (or (hasPrefix "--load-balancer-class=" .) (eq . "--load-balancer-class")) (ne $.Values.loadBalancerClass "weir.dev/azure") }}
{{- fail (printf "extraArgs has %s, and loadBalancerClass is %q: remove one" . $.Values.loadBalancerClass) }}
{{- end }}
{{- end }}
{{- if ne .Values.clusterName "kubernetes" }}
- {{ printf "--cluster-name=%s" .Values.clusterName | quote }}
{{- end }}
{{- if ne .Values.loadBalancerClass "weir.dev/azure" }}
- {{ printf "--load-balancer-class=%s" .Values.loadBalancerClass | quote }}
{{- end }}
{{- end }}
