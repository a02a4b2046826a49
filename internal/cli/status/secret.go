// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/humanize"
)

// configSource is the Secret that a pod mounts as azure.json.
type configSource struct{ secret, key string }

// configSource returns the Secret and the key of --config; false if it is not from a Secret.
func (i *Installation) configSource() (configSource, bool) {
	file := i.configFile()
	for _, m := range i.Container().VolumeMounts {
		rest, ok := strings.CutPrefix(file, strings.TrimSuffix(m.MountPath, "/")+"/")
		if file == m.MountPath {
			rest, ok = m.SubPath, m.SubPath != ""
		}
		if !ok {
			continue
		}
		for _, v := range i.Deployment.Spec.Template.Spec.Volumes {
			if v.Name == m.Name && v.Secret != nil {
				return configSource{v.Secret.SecretName, keyOfPath(v.Secret.Items, rest)}, true
			}
		}
	}
	return configSource{}, false
}

func keyOfPath(items []corev1.KeyToPath, file string) string {
	for _, item := range items {
		if item.Path == file {
			return item.Key
		}
	}
	return file
}

func (i *Installation) createSecretCommand() string {
	source, ok := i.configSource()
	if !ok {
		source = configSource{"weir-azure", path.Base(i.configFile())}
	}
	return fmt.Sprintf("kubectl -n %s create secret generic %s --from-file=%s=azure.json", i.Deployment.Namespace, source.secret, source.key)
}

// CheckSecret checks the Secret with azure.json, and its key. It reads the content and returns none of it.
func (i *Installation) CheckSecret(ctx context.Context, api client.Reader) Finding {
	if i.Deployment == nil {
		return Finding{Unknown, "no Deployment is seen that names one", ""}
	}
	source, ok := i.configSource()
	if !ok {
		return Finding{OK, fmt.Sprintf("Deployment %s has --config %s from no Secret", i.name(), i.configFile()), ""}
	}
	var s corev1.Secret
	name := i.Deployment.Namespace + "/" + source.secret
	switch err := api.Get(ctx, client.ObjectKey{Namespace: i.Deployment.Namespace, Name: source.secret}, &s); {
	case apierrors.IsForbidden(err):
		return Finding{Unknown, "you may not get Secret " + name, "run it with the rights of a cluster administrator: it shows keys, and no content"}
	case apierrors.IsNotFound(err):
		return Finding{Fail, fmt.Sprintf("there is no Secret %s, from which Weir's pods have azure.json: they do not start", name), i.createSecretCommand()}
	case err != nil:
		return Finding{Unknown, err.Error(), ""}
	}
	return i.checkKey(source, s.Data)
}

func (i *Installation) checkKey(source configSource, data map[string][]byte) Finding {
	name := i.Deployment.Namespace + "/" + source.secret
	replace := fmt.Sprintf("%s --dry-run=client -o yaml | kubectl apply -f -; then kubectl -n %s rollout restart deployment %s", i.createSecretCommand(), i.Deployment.Namespace, i.Deployment.Name)
	content, ok := data[source.key]
	switch {
	case ok && len(content) == 0:
		return Finding{Fail, fmt.Sprintf("key %s of Secret %s is empty", source.key, name), replace}
	case ok:
		return Finding{OK, fmt.Sprintf("Secret %s has the key %s", name, source.key), ""}
	}
	text := "it has no keys"
	if len(data) > 0 {
		text = "it has " + humanize.FormatList(slices.Sorted(maps.Keys(data)), 5)
	}
	return Finding{Fail, fmt.Sprintf("Secret %s lacks the key %s, which --config %s reads: %s", name, source.key, i.configFile(), text), replace}
}
