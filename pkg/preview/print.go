package preview

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/samplecrd/network-controller/pkg/plan"
	"github.com/samplecrd/network-controller/pkg/status"
)

// print writes the plan in a format: "text" or "json".
func (p Plan) print(w io.Writer, format string) error {
	if format == "json" {
		encoder := json.NewEncoder(w)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(p)
	}
	_, err := io.WriteString(w, p.text())
	return err
}

// line returns a line that cannot control a terminal.
func line(format string, values ...any) string {
	return status.Printable(fmt.Sprintf(format, values...)) + "\n"
}

// signs are those of the actions. A change of the object in Kubernetes is an update.
var signs = map[plan.Action]string{plan.Create: "+", plan.Update: "~", plan.Delete: "-"}

func (p Plan) text() string {
	var out strings.Builder
	for _, network := range p.Networks {
		if network.Steps == nil && network.Error == "" {
			continue
		}
		title := "Network " + network.key()
		if network.Because != "" {
			title += ": " + network.Because
		}
		out.WriteString(line("%s", title))
		for _, step := range network.Steps {
			out.WriteString(line("  %s %s", signs[step.Action], step.Text))
		}
		if blocked := network.Blocked; blocked != nil {
			out.WriteString(line("  ! blocked: %s: %s", blocked.Reason, blocked.Message))
		}
		if network.Error != "" {
			out.WriteString(line("  ! unknown: %s", network.Error))
		}
		out.WriteString("\n")
	}
	out.WriteString(p.blockedText())
	out.WriteString(p.leftoverText())
	for _, err := range p.Errors {
		out.WriteString(line("! not in this plan: %s", err))
	}
	if p.Errors != nil {
		out.WriteString("\n")
	}
	if p.CloudOf != "" {
		out.WriteString(line("This is the cloud %s, %s.", p.Cloud, p.CloudOf))
	}
	return out.String() + p.Summary.String() + "\n"
}

func (n Network) key() string { return n.Namespace + "/" + n.Name }

// maxNamed is how many Networks a title names.
const maxNamed = 5

// blockedText has a paragraph for each obstacle, with the Networks that have no steps
// because of it.
func (p Plan) blockedText() string {
	var obstacles []Blocked
	networks := map[Blocked][]string{}
	for _, network := range p.Networks {
		if network.Blocked == nil || network.Steps != nil {
			continue
		}
		obstacle := *network.Blocked
		if networks[obstacle] == nil {
			obstacles = append(obstacles, obstacle)
		}
		networks[obstacle] = append(networks[obstacle], network.key())
	}
	var out strings.Builder
	for _, obstacle := range obstacles {
		keys := networks[obstacle]
		title := "Network " + keys[0]
		if n := len(keys); n > 1 {
			title = fmt.Sprintf("%d Networks: %s", n, strings.Join(keys[:min(n, maxNamed)], ", "))
			if n > maxNamed {
				title += fmt.Sprintf(" and %d more", n-maxNamed)
			}
		}
		out.WriteString(line("%s", title))
		out.WriteString(line("  ! blocked: %s: %s", obstacle.Reason, obstacle.Message) + "\n")
	}
	return out.String()
}

// leftoverText has a section with the networks that are not in Kubernetes.
func (p Plan) leftoverText() string {
	if len(p.NotInKubernetes) == 0 {
		return ""
	}
	var out strings.Builder
	out.WriteString(line("Not in Kubernetes: networks in Neutron that belong to this cluster"))
	out.WriteString(line("To keep one, apply a Network with its namespace and name again. "+
		"To delete one, run the command.") + "\n")
	columns := tabwriter.NewWriter(&out, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(columns, "  NAMESPACE\tNAME\tRANGE\tCREATED\tMARKER\tCOMMAND") // a Builder does not fail
	for _, leftover := range p.NotInKubernetes {
		created, ranges := "unknown time", "no subnet"
		if leftover.Created != nil {
			created = leftover.Created.Format("2006-01-02 15:04:05Z")
		}
		if len(leftover.CIDRs) > 0 {
			ranges = strings.Join(leftover.CIDRs, ", ")
		}
		cells := []string{leftover.Namespace, leftover.Name, ranges, created, leftover.Marker, leftover.Command}
		for i := range cells {
			cells[i] = status.Printable(cells[i])
		}
		_, _ = fmt.Fprintln(columns, "  "+strings.Join(cells, "\t"))
	}
	_ = columns.Flush()
	return out.String() + "\n"
}

// String returns the summary as a line.
func (s Summary) String() string {
	first := fmt.Sprintf("Plan: %d to create, %d to update, %d to delete.", s.Create, s.Update, s.Delete)
	if s.Create+s.Update+s.Delete == 0 {
		first = "Nothing to do."
	}
	var rest []string
	for _, part := range []struct {
		n                int
		singular, plural string
	}{
		{s.Unchanged, "Network is as desired", "Networks are as desired"},
		{s.Blocked - s.Unreported, "Network is blocked", "Networks are blocked"},
		{s.Unreported, "Network would be blocked", "Networks would be blocked"},
		{s.Failed, "Network has an unknown plan", "Networks have an unknown plan"},
		{s.Retained + s.Orphans, "network is not in Kubernetes", "networks are not in Kubernetes"},
	} {
		switch {
		case part.n == 1:
			rest = append(rest, "1 "+part.singular)
		case part.n > 1:
			rest = append(rest, fmt.Sprintf("%d %s", part.n, part.plural))
		}
	}
	if rest == nil {
		return first
	}
	return first + " " + strings.Join(rest, ", ") + "."
}
