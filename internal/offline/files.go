// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/k8s/metadata"
)

// DecodeFile adds the objects of a YAML or JSON file, including lists. It returns one error per
// document with a Service, BackendPool or Namespace that an API server would reject; see also InvalidGateways.
func (o *Objects) DecodeFile(file string, from io.Reader) []error {
	docs := utilyaml.NewYAMLReader(bufio.NewReader(from))
	var errs []error
	for n := 1; ; n++ {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return errs
		}
		o.currentDocument = fmt.Sprintf("%s: document %d", file, n)
		if err != nil {
			return append(errs, fmt.Errorf("%s: %w", o.currentDocument, err))
		}
		if err = checkSingleDocument(doc); err == nil {
			doc, err = yaml.YAMLToJSONStrict(doc)
		}
		if err == nil {
			err = o.addDocument(doc)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", o.currentDocument, err))
		}
	}
}

func (o *Objects) addDocument(doc []byte) error {
	var head struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        metav1.ObjectMeta `json:"metadata"`
		Items           []json.RawMessage `json:"items"`
	}
	if string(doc) == "null" {
		return nil
	}
	if err := json.Unmarshal(doc, &head); err != nil {
		return err
	}
	var err error
	if head.APIVersion == "" || head.Kind == "" {
		return errors.New("no apiVersion, or no kind: that is no object of Kubernetes")
	}
	switch head.APIVersion + " " + head.Kind {
	case "v1 Service":
		err = decodeInto(doc, &o.Services, func(s *corev1.Service, before int) error {
			setDefaultNamespace(&s.ObjectMeta)
			o.recordOrigin(head.Kind, s.ObjectMeta, doc)
			wrong := validateService(s)
			setDefaults(s, before)
			return joinErrors(wrong)
		})
	case "v1 Node":
		err = json.Unmarshal(doc, addTo(&o.Nodes))
	case "v1 Namespace":
		err = decodeInto(doc, &o.Namespaces, func(n *corev1.Namespace, _ int) error { return joinErrors(validateNamespace(n)) })
	case discoveryv1.SchemeGroupVersion.String() + " EndpointSlice":
		s := addTo(&o.Slices)
		err = json.Unmarshal(doc, s)
		setDefaultNamespace(&s.ObjectMeta)
	case v1alpha1.GroupVersion.String() + " BackendPool":
		err = decodeInto(doc, &o.Pools, func(p *v1alpha1.BackendPool, _ int) error {
			setDefaultNamespace(&p.ObjectMeta)
			o.recordOrigin(head.Kind, p.ObjectMeta, doc)
			withUID(&p.ObjectMeta, "BackendPool")
			return joinErrors(validateBackendPool(p))
		})
	default:
		if obj := newGatewayObject(head.TypeMeta); obj != nil {
			o.addGatewayObject(doc, obj, head.TypeMeta, head.Metadata)
			return nil
		}
		for i, item := range head.Items { // a List
			if err := o.addDocument(item); err != nil {
				return fmt.Errorf("item %d: %w", i+1, err)
			}
		}
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", head.Kind, objectName(head.Metadata), err)
	}
	return nil
}

func objectName(m metav1.ObjectMeta) string {
	if m.Namespace == "" {
		return m.Name
	}
	return metadata.Key(m.Namespace, m.Name)
}

// decodeInto adds an object and returns what an API server would reject.
func decodeInto[T any](doc []byte, items *[]T, finish func(obj *T, before int) error) error {
	obj := addTo(items)
	if err := decodeStrict(doc, obj); err != nil {
		return err
	}
	return finish(obj, len(*items)-1)
}

func addTo[T any](items *[]T) *T {
	var obj T
	*items = append(*items, obj)
	return &(*items)[len(*items)-1]
}

func (o *Objects) recordOrigin(kind string, m metav1.ObjectMeta, doc []byte) {
	o.sources = append(o.sources, objectSource{place: o.currentDocument, kind: kind, namespace: m.Namespace, name: m.Name, doc: doc})
}

func setDefaultNamespace(m *metav1.ObjectMeta) {
	if m.Namespace == "" {
		m.Namespace = metav1.NamespaceDefault
	}
}

// withUID sets a deterministic UID if there is none.
func withUID(m *metav1.ObjectMeta, kind string) bool {
	if m.UID != "" {
		return false
	}
	sum := sha256.Sum256([]byte(kind + " " + metadata.Key(m.Namespace, m.Name)))
	m.UID = types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]))
	return true
}

// firstNodePort replaces a node port the API server would allocate.
const firstNodePort = 30000

func setDefaults(s *corev1.Service, before int) {
	for i := range s.Spec.Ports {
		if s.Spec.Ports[i].Protocol == "" {
			s.Spec.Ports[i].Protocol = corev1.ProtocolTCP
		}
	}
	if !withUID(&s.ObjectMeta, "Service") || s.Spec.Type != corev1.ServiceTypeLoadBalancer && s.Spec.Type != corev1.ServiceTypeNodePort {
		return
	}
	if s.Spec.Type == corev1.ServiceTypeLoadBalancer {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, metadata.NotCreatedAnnotation, "true")
	}
	next := int32(firstNodePort + before*16%2000) //nolint:gosec // a port
	setPort := func(port *int32) {
		if *port == 0 {
			*port = next
		}
		next++
	}
	if ptr.Deref(s.Spec.AllocateLoadBalancerNodePorts, true) {
		for i := range s.Spec.Ports {
			setPort(&s.Spec.Ports[i].NodePort)
		}
	}
	if s.Spec.Type == corev1.ServiceTypeLoadBalancer && s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal {
		setPort(&s.Spec.HealthCheckNodePort)
	}
}

// FindDuplicate returns the first duplicate object.
func (o *Objects) FindDuplicate() string {
	seen := map[string]bool{}
	duplicate := ""
	checkName := func(kind string, m metav1.ObjectMeta) {
		name := kind + " " + objectName(m)
		if seen[name] && duplicate == "" {
			duplicate = name
		}
		seen[name] = true
	}
	for _, x := range o.Services {
		checkName("Service", x.ObjectMeta)
	}
	for _, x := range o.Nodes {
		checkName("Node", x.ObjectMeta)
	}
	for _, x := range o.Slices {
		checkName("EndpointSlice", x.ObjectMeta)
	}
	for _, x := range o.Pools {
		checkName("BackendPool", x.ObjectMeta)
	}
	for _, x := range o.Gateways {
		checkName(x.GetObjectKind().GroupVersionKind().Kind, metav1.ObjectMeta{Namespace: x.GetNamespace(), Name: x.GetName()})
	}
	return duplicate
}
