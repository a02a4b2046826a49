// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"errors"
	"fmt"

	"k8s.io/client-go/rest"

	"weir.dev/weir/internal/provisioning/kubeconfig"
)

// A two-byte user takes over a kilobyte once decoded, so values are bounded as well as bytes.
const maxKubeconfigBytes, maxKubeconfigValues = 256 << 10, 10_000

// maxServerURL is in bytes: the status and the cache store it.
const maxServerURL = 1024

func parseKubeconfig(text []byte) (*rest.Config, string, error) {
	left := maxKubeconfigValues
	if len(text) > maxKubeconfigBytes {
		return nil, "", fmt.Errorf("it has more than %d KiB", maxKubeconfigBytes>>10)
	}
	_, err := parseYAML(text, &left)
	switch known, is := errors.AsType[unsupportedError](err); {
	case is && left >= 0:
		return nil, "", known
	case is:
		return nil, "", fmt.Errorf("it has more than %d values", maxKubeconfigValues)
	case err != nil: // the error may quote credentials
		return nil, "", errors.New("it is no kubeconfig")
	}
	cfg, namespace, err := kubeconfig.Parse(text)
	if err == nil && len(cfg.Host) > maxServerURL {
		return nil, "", fmt.Errorf("server: it has %d bytes, and at most %d", len(cfg.Host), maxServerURL)
	}
	return cfg, namespace, err
}
