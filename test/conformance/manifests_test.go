// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/conformance"
	sigsyaml "sigs.k8s.io/yaml"
)

const baseManifests = "base/layer4.yaml"

// manifests returns the suite's manifests. baseManifests in it are the suite's base resources without the Gateways that have
// HTTP and HTTPS listeners only: setup waits until every Gateway is accepted.
func manifests() ([]fs.FS, error) {
	manifests, err := fs.ReadFile(conformance.Manifests, "base/manifests.yaml")
	if err != nil {
		return nil, err
	}
	var kept bytes.Buffer
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096)
	for {
		var document runtime.RawExtension
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		var gateway v1.Gateway
		if err := sigsyaml.Unmarshal(document.Raw, &gateway); err != nil {
			return nil, err
		}
		if gateway.Kind != "Gateway" || hasLayer4(&gateway) {
			fmt.Fprintf(&kept, "---\n%s\n", document.Raw)
		}
	}
	return []fs.FS{fstest.MapFS{baseManifests: {Data: kept.Bytes()}}, conformance.Manifests}, nil
}

func hasLayer4(gateway *v1.Gateway) bool {
	for _, l := range gateway.Spec.Listeners {
		if l.Protocol != v1.HTTPProtocolType && l.Protocol != v1.HTTPSProtocolType {
			return true
		}
	}
	return false
}
