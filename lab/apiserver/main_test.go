// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"weir.dev/weir/test/controlplane"
)

// kubeAPIServer is the kube-apiserver to compare with.
var kubeAPIServer *rest.Config

func TestMain(m *testing.M) {
	controlplane.RunWithControlPlane(m, controlplane.Options{Parallel: 16, CRDs: true, SetUp: func(env *envtest.Environment) (func() error, error) {
		kubeAPIServer = env.Config
		return nil, nil
	}})
}
