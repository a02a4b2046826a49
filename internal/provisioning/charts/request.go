// SPDX-License-Identifier: Apache-2.0

package charts

// Command is the argument that makes this program render a chart.
const Command = "render-chart"

// Request is the input of a child.
type Request struct {
	Chart []byte // a .tgz
	// Values are YAML or JSON; later ones win.
	Values      [][]byte
	ReleaseName string
	Namespace   string
	KubeVersion string
	// APIVersions are group/version and group/version/Kind strings.
	APIVersions []string
}

// Response is the output of a child.
type Response struct {
	// Documents are in install order, crds/ first.
	Documents []Document
	Error     string
}

// Document is the YAML of one or more objects.
type Document struct {
	Name string // of the file
	Text string
}
