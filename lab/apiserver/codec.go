// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"mime"
	"net/http"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/yaml"
)

var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(s))
	utilruntime.Must(discoveryv1.AddToScheme(s))
	utilruntime.Must(coordinationv1.AddToScheme(s))
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	return s
}()

// Custom resources are JSON only.
var (
	inJSON     = mediaType(runtime.ContentTypeJSON)
	inProtobuf = mediaType(runtime.ContentTypeProtobuf)
)

func mediaType(name string) runtime.SerializerInfo {
	info, ok := runtime.SerializerInfoForMediaType(serializer.NewCodecFactory(scheme).SupportedMediaTypes(), name)
	if !ok {
		panic("no serializer for " + name) // the codec factory always has both
	}
	return info
}

func negotiateFormat(h http.Header, k *resourceKind) (info runtime.SerializerInfo, metadataOnly bool) {
	first, _, _ := strings.Cut(h.Get("Accept"), ",")
	name, params, err := mime.ParseMediaType(first)
	if err != nil {
		return inJSON, false
	}
	metadataOnly = strings.HasPrefix(params["as"], "PartialObjectMetadata")
	if name == runtime.ContentTypeProtobuf && (k.crd == nil || metadataOnly) {
		return inProtobuf, metadataOnly
	}
	return inJSON, metadataOnly
}

func decodeObject(k *resourceKind, contentType string, body []byte) (object, error) {
	name, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		name = runtime.ContentTypeJSON
	}
	if k.crd != nil {
		return decodeCustom(k, name, body)
	}
	info := inJSON
	switch name {
	case runtime.ContentTypeJSON:
	case runtime.ContentTypeProtobuf:
		info = inProtobuf
	case runtime.ContentTypeYAML:
		if body, err = yaml.YAMLToJSON(body); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	default:
		return nil, unsupportedMedia(name)
	}
	o, current, err := info.Serializer.Decode(body, &k.gvk, nil)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	got, ok := o.(object)
	if !ok || *current != k.gvk {
		return nil, kindMismatch(k, *current)
	}
	got.GetObjectKind().SetGroupVersionKind(k.gvk)
	if k.setDefaults != nil {
		k.setDefaults(got)
	}
	return got, nil
}

func decodeCustom(k *resourceKind, name string, body []byte) (object, error) {
	switch name {
	case runtime.ContentTypeJSON, runtime.ContentTypeYAML:
	default:
		return nil, unsupportedMedia(name)
	}
	if name == runtime.ContentTypeYAML {
		var err error
		if body, err = yaml.YAMLToJSON(body); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(body); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if u.GroupVersionKind() != k.gvk {
		return nil, kindMismatch(k, u.GroupVersionKind())
	}
	k.setDefaults(u)
	return u, nil
}

func kindMismatch(k *resourceKind, got schema.GroupVersionKind) error {
	return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: expected %s", got.Kind, got.Version, k.gvk.Kind, k.gvk))
}

func unsupportedMedia(name string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: fmt.Sprintf("the body of the request was in an unknown format - %q is none of those that are accepted", name),
	}}
}

func objectMetadata(o object) *metav1.PartialObjectMetadata {
	u, ok := o.(*unstructured.Unstructured)
	p := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: metav1.SchemeGroupVersion.String()}}
	if ok {
		if m, found := u.Object["metadata"].(map[string]any); found {
			utilruntime.Must(runtime.DefaultUnstructuredConverter.FromUnstructured(m, &p.ObjectMeta))
		}
		return p
	}
	p.ObjectMeta = *o.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta)
	return p
}
