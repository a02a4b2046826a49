// SPDX-License-Identifier: Apache-2.0

package main

// plugin is a krew manifest, version v1alpha2.
type plugin struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   map[string]string `json:"metadata"`
	Spec       pluginSpec        `json:"spec"`
}

type pluginSpec struct {
	Version          string     `json:"version"`
	Homepage         string     `json:"homepage"`
	ShortDescription string     `json:"shortDescription"`
	Description      string     `json:"description"`
	Platforms        []platform `json:"platforms"`
}

type platform struct {
	Selector selector `json:"selector"`
	URI      string   `json:"uri"`
	SHA256   string   `json:"sha256"`
	Bin      string   `json:"bin"`
}

type selector struct {
	MatchLabels map[string]string `json:"matchLabels"`
}

func newManifest(version string) plugin {
	return plugin{
		APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin",
		Metadata: map[string]string{"name": "weir"},
		Spec: pluginSpec{
			Version: version, Homepage: "https://weir.dev/weir",
			ShortDescription: "See why an Azure load balancer is not in sync",
			Description: `What Weir, the Azure Load Balancer controller, knows of a cluster: what is wrong, since when,
for whom and what helps (kubectl weir status), the way from an address to its nodes
(kubectl weir explain), each call to Azure (kubectl weir calls), and what people ask of it:
kubectl weir retry, plan, migrate, provision. It needs a cluster in which Weir runs.
`,
		},
	}
}
