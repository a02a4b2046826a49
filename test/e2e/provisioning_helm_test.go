// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"weir.dev/weir/api/v1alpha1"
)

// newChart returns a chart archive with these files.
func newChart(t *testing.T, files map[string]string) string {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	archive := tar.NewWriter(zip)
	for name, text := range files {
		err := archive.WriteHeader(&tar.Header{Name: "shop/" + name, Mode: 0o600, Size: int64(len(text))})
		if _, wrong := archive.Write([]byte(text)); errors.Join(err, wrong) != nil {
			t.Fatal(err, wrong)
		}
	}
	if err := errors.Join(archive.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(out.Bytes())
}

// A chart is rendered for its target cluster, and removed objects are pruned. An endless
// computation fails its Provision only.
func TestProvisioningByAChart(t *testing.T) {
	runParallel(t)
	p := newProvisioning(t)
	p.installRoles()
	good := newChart(t, map[string]string{
		"Chart.yaml": "{apiVersion: v2, name: shop, version: 1.2.3, kubeVersion: '>=1.30.0-0'}",
		"templates/all.yaml": `{{ range .Values.names }}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: {{ $.Release.Name }}-{{ . }}}, data: {pods: "{{ $.Capabilities.APIVersions.Has "v1/Pod" }}", weir: "{{ $.Capabilities.APIVersions.Has "weir.dev/v1alpha1/Provision" }}"}}
{{ end }}`,
	})
	endless := newChart(t, map[string]string{
		"Chart.yaml":         "{apiVersion: v2, name: shop, version: 1.2.3}",
		"templates/all.yaml": `{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}`,
	})
	provision := func(name, key, values string) {
		p.applyFile(`
apiVersion: v1
kind: ConfigMap
metadata: {name: charts}
binaryData: {good: ` + good + `, endless: ` + endless + `}
---
apiVersion: weir.dev/v1alpha1
kind: Provision
metadata: {name: ` + name + `}
spec:
  target: {serviceAccountName: installer}
  steps:
    - name: shop
      helm: {chart: {configMap: charts, key: ` + key + `}, releaseName: edge, values: ` + values + `, prune: true}
`)
	}
	provision("here", "good", "{names: [a, b]}")
	p.provisioner("--leader-elect=false")
	p.waitState("here", v1alpha1.ProvisionSucceeded, 1)
	for _, name := range []string{"edge-a", "edge-b"} {
		if cm, err := p.configMap(name); err != nil || cm.Data["pods"] != "true" || cm.Data["weir"] != "true" {
			t.Errorf("%s is %v, %v", name, cm.Data, err)
		}
	}
	provision("endless", "endless", "{}")
	if got := p.waitState("endless", v1alpha1.ProvisionFailed, 1).LastAttempt.Message; !strings.Contains(got, "needs more than 5 s of CPU") {
		t.Errorf("an endless one: %s", got)
	}
	provision("here", "good", "{names: [a]}")
	p.eventually("edge-b is pruned", func() error {
		if _, err := p.configMap("edge-b"); err == nil {
			return errors.New("it is still there")
		}
		return nil
	})
	p.waitState("here", v1alpha1.ProvisionSucceeded, 1)
}
