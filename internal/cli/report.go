package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"slipway/manifest"
	"slipway/manifest/content"
	"slipway/verify"
	"slipway/verify/page"
	"slipway/verify/report"
)

// reportFile is the report in one form.
type reportFile struct {
	name  string
	write func(io.Writer, *report.Report) error
}

// reportFiles are what --report writes.
var reportFiles = []reportFile{
	{"report.json", func(w io.Writer, r *report.Report) error {
		data, err := r.JSON()
		if err == nil {
			_, err = w.Write(data)
		}
		return err
	}},
	{"report.txt", func(w io.Writer, r *report.Report) error { return r.WriteText(w) }},
	{"REVIEW.md", page.Review},
	{"report.html", page.HTML},
}

func reportFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("report", "", "also write the report into this folder: report.html, REVIEW.md, report.txt and report.json")
}

// reportFolder is the folder that --report names. It appears, or is replaced, as
// a whole when the report is there; nil, whose methods do nothing, where no report
// is asked for.
type reportFolder struct {
	stage *content.Stage
	name  string
	tell  io.Writer // that it is there
}

// openReport begins the folder, so that a name that cannot be written to is told
// before the work and not after. subject is what the report is about: a report
// inside it would be part of the submission.
func openReport(cmd *cobra.Command, folder, subject string) (*reportFolder, error) {
	if !cmd.Flags().Changed("report") {
		return nil, nil
	}
	if folder == "" {
		return nil, usageError{errors.New("--report: the folder's name is empty")}
	}
	if path, _, kind := classify(subject); (kind == content.OriginFolder || kind == content.OriginLayout) && within(folder, path) {
		return nil, usageError{manifest.WithHint(fmt.Errorf("--report %s: it lies in the submission %s, and would become part of it", folder, subject), "name a folder outside")}
	}
	stage, err := content.NewStageOver(folder, notOfReport)
	if err != nil {
		return nil, fmt.Errorf("--report: %w", err)
	}
	return &reportFolder{stage, folder, cmd.ErrOrStderr()}, nil
}

// verifyInto verifies a submission and writes the report into a folder, if any is
// asked for.
func (a *app) verifyInto(cmd *cobra.Command, folder, subject string, tree *content.Tree, options verify.Options) (*report.Report, error) {
	into, err := openReport(cmd, folder, subject)
	if err != nil {
		return nil, err
	}
	defer into.abandon()
	r, err := a.verify(cmd.Context(), tree, options)
	if err != nil {
		return nil, err
	}
	return r, into.write(r)
}

// within reports whether a path is a folder or lies in it.
func within(path, folder string) bool {
	a, errA := filepath.Abs(path)
	b, errB := filepath.Abs(folder)
	if errA != nil || errB != nil {
		return false
	}
	relative, err := filepath.Rel(b, a)
	return err == nil && relative != ".." && !strings.HasPrefix(relative, ".."+string(filepath.Separator))
}

// notOfReport says what in a folder is not of a report that slipway wrote there.
func notOfReport(folder string) string {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return "it cannot be listed: " + manifest.Cause(err).Error()
	}
	ours := false
	for _, entry := range entries {
		known := slices.ContainsFunc(reportFiles, func(f reportFile) bool { return f.name == entry.Name() })
		if !known || !entry.Type().IsRegular() {
			return entry.Name() + " in it is not of a report"
		}
		ours = ours || entry.Name() == reportFiles[0].name
	}
	if !ours {
		return "slipway did not write it"
	}
	return ""
}

// write writes the report and gives the folder its name.
func (f *reportFolder) write(r *report.Report) error {
	if f == nil {
		return nil
	}
	for _, file := range reportFiles {
		if err := f.writeFile(file, r); err != nil {
			return fmt.Errorf("--report %s: %w", f.name, err)
		}
	}
	if err := f.stage.Commit(); err != nil {
		return fmt.Errorf("--report %s: %w", f.name, err)
	}
	_, err := fmt.Fprintf(f.tell, "report: %s\n", manifest.Printable(filepath.Join(f.name, "report.html")))
	return err
}

func (f *reportFolder) writeFile(file reportFile, r *report.Report) error {
	out, err := f.stage.Create(manifest.File{Path: file.name, Mode: manifest.ModeFile})
	if err != nil {
		return err
	}
	err = file.write(out, r)
	if closeErr := out.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file.name, content.WriteFault(err))
	}
	return nil
}

// abandon removes what was not finished.
func (f *reportFolder) abandon() {
	if f != nil {
		f.stage.Abort()
	}
}
