// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/netip"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/config/crd"
	"weir.dev/weir/internal/lb"
)

const namespace = "shop"

// loadBalancerClass is the class that Weir serves. It is repeated here because users write it too.
const loadBalancerClass = "weir.dev/azure"

// appLabel is the pod selector of Services.
const appLabel = "app"

// workload is a Deployment and a Service of the same name.
type workload struct{ name string }

var allWorkloads = []workload{{"web"}, {"api"}, {"db"}}

// poolName returns the Azure name of the workload's pool, which is part of Weir's API.
func (w workload) poolName() string { return namespace + "-" + w.name }

// cluster performs the changes that users make with kubectl.
type cluster struct {
	api  client.Client
	http *http.Client // for requests that client does not support
	host string       // URL of the API server
}

func newCluster(config *rest.Config) (*cluster, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), gatewayv1.Install(scheme)); err != nil {
		return nil, err
	}
	web, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	api, err := client.New(config, client.Options{Scheme: scheme, HTTPClient: web})
	return &cluster{api: api, http: web, host: strings.TrimSuffix(config.Host, "/")}, err
}

// installCRDs creates Weir's CRDs and waits until the API server serves them.
func (c *cluster) installCRDs(ctx context.Context) error {
	files, err := fs.Glob(crd.Files, "*.yaml")
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := c.createFile(ctx, crd.Files, file); err != nil {
			return err
		}
	}
	return pollUntil(ctx, 20*time.Millisecond, func() (bool, error) {
		err := c.api.List(ctx, &v1alpha1.BackendPoolList{})
		return err == nil, nil
	})
}

// createFile creates the objects of a YAML file.
func (c *cluster) createFile(ctx context.Context, files fs.FS, name string) error {
	raw, err := fs.ReadFile(files, name)
	if err != nil {
		return err
	}
	for text := range bytes.SplitSeq(raw, []byte("\n---\n")) {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &o.Object); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := c.api.Create(ctx, o); err != nil {
			return fmt.Errorf("creating %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

// createNamespaces creates the namespaces of the Services and of Weir's Lease.
func (c *cluster) createNamespaces(ctx context.Context) error {
	return c.createObject(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: weirNamespace}})
}

// createWorkload creates a workload. From here on its endpoints belong in a pool.
func (c *cluster) createWorkload(ctx context.Context, w workload, replicas int, annotations map[string]string) error {
	service := newService(w.name, w.name)
	service.Annotations = annotations
	meta := metav1.ObjectMeta{Namespace: namespace, Name: w.name}
	app := map[string]string{appLabel: w.name}
	return c.createObject(ctx,
		&appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(replicas)), //nolint:gosec // Validate bounds it
			Selector: &metav1.LabelSelector{MatchLabels: app},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: app},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "serve", Image: "shop/" + w.name}}},
			},
		}},
		service)
}

// newService returns a Service for the pods of an app, with an address from Weir.
func newService(name, app string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: new(loadBalancerClass),
			ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal,
			Selector:              map[string]string{appLabel: app}, Ports: []corev1.ServicePort{{Port: 80}},
		},
	}
}

func (c *cluster) createObject(ctx context.Context, objects ...client.Object) error {
	for _, o := range objects {
		if err := c.api.Create(ctx, o); err != nil {
			return fmt.Errorf("creating %T %s: %w", o, o.GetName(), err)
		}
	}
	return nil
}

// addNode creates node-<i>. Its address continues kubelab's range.
func (c *cluster) addNode(ctx context.Context, i int) error {
	host := i + 3
	address := netip.AddrFrom4([4]byte{10, 224, byte(host >> 8), byte(host)}).String()
	return c.createObject(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i)},
		Status:     corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}},
	})
}

func (c *cluster) scaleDeployment(ctx context.Context, name string, replicas int) error {
	return c.patchObject(ctx, &appsv1.Deployment{}, namespace, name, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
}

// restartDeployment does what kubectl rollout restart does.
func (c *cluster) restartDeployment(ctx context.Context, name string) error {
	return c.patchObject(ctx, &appsv1.Deployment{}, namespace, name,
		fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":%q}}}}}`, time.Now().Format(time.RFC3339)))
}

// stopMachine removes a node's machine; the Node object is kept.
func (c *cluster) stopMachine(ctx context.Context, node string) error {
	return c.patchObject(ctx, &corev1.Node{}, "", node, `{"metadata":{"annotations":{"kubelab.weir.dev/dead":"true"}}}`)
}

func (c *cluster) cordonNode(ctx context.Context, node string) error {
	return c.patchObject(ctx, &corev1.Node{}, "", node, `{"spec":{"unschedulable":true}}`)
}

func (c *cluster) patchObject(ctx context.Context, o client.Object, namespace, name, change string) error {
	o.SetNamespace(namespace)
	o.SetName(name)
	if err := c.api.Patch(ctx, o, client.RawPatch("application/merge-patch+json", []byte(change))); err != nil {
		return fmt.Errorf("patching %T %s: %w", o, name, err)
	}
	return nil
}

// evictPods deletes the pods of a node and returns their number.
func (c *cluster) evictPods(ctx context.Context, node string) (int, error) {
	pods, err := c.listPods(ctx)
	if err != nil {
		return 0, err
	}
	evicted := 0
	for i := range pods {
		if pods[i].Spec.NodeName != node {
			continue
		}
		if err := c.deleteObject(ctx, &pods[i]); err != nil {
			return evicted, err
		}
		evicted++
	}
	return evicted, nil
}

func (c *cluster) deleteObject(ctx context.Context, o client.Object) error {
	if err := c.api.Delete(ctx, o); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting %T %s: %w", o, o.GetName(), err)
	}
	return nil
}

func (c *cluster) listPods(ctx context.Context) ([]corev1.Pod, error) {
	var pods corev1.PodList
	err := c.api.List(ctx, &pods, client.InNamespace(namespace))
	return pods.Items, err
}

// pollUntil polls until ask returns true or an error, or ctx is done.
func pollUntil(ctx context.Context, every time.Duration, ask func() (bool, error)) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		if yes, err := ask(); yes || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// sleepContext waits for d or until ctx is done.
func sleepContext(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

func (c *cluster) getNode(ctx context.Context, name string) (*corev1.Node, error) {
	node := &corev1.Node{}
	if err := c.api.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		return nil, fmt.Errorf("reading node %s: %w", name, err)
	}
	return node, nil
}

// announceEviction acts as a spot machine's agent that received Azure's eviction notice.
func (c *cluster) announceEviction(ctx context.Context, node *corev1.Node) error {
	now := metav1.Now()
	return c.createObject(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, GenerateName: node.Name + "."},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID},
		Type:           corev1.EventTypeWarning, Reason: reasonPreempt, Message: "Preempt scheduled",
		Source: corev1.EventSource{Component: lb.DefaultReporters()[0], Host: node.Name}, FirstTimestamp: now, LastTimestamp: now, Count: 1,
	})
}
