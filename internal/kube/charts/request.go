// SPDX-License-Identifier: Apache-2.0

package charts

// Command is the argument with which this program renders a chart.
const Command = "render-chart"

// Request is a chart, and what it is rendered with.
type Request struct {
	Chart []byte // a .tgz
	// Values are YAML or JSON; of several the later one counts.
	Values      [][]byte
	ReleaseName string
	Namespace   string
	KubeVersion string
	// APIVersions are what the target knows, as group/version and group/version/Kind.
	APIVersions []string
}

// Answer is what was rendered.
type Answer struct {
	// Documents are the objects as YAML: those of crds/ first, then the others in the order in which Helm
	// installs their kinds.
	Documents []Document
	// Error is why there are none.
	Error string
}

// Document is the YAML of one or more objects.
type Document struct {
	Name string // of the file
	Text string
}
