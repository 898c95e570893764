package handlers

import "net/http"

// Pages are the files of the dashboard; [dashboard.Pages] has them.
type Pages interface {
	ServePage(http.ResponseWriter, *http.Request)
	ServeAsset(w http.ResponseWriter, r *http.Request, name string) bool
}

// findDashboard leads to the dashboard.
//
// @Summary  Redirect to the dashboard
// @Produce  html
// @Success  302 {string} string "To dashboard/"
// @Header   302 {string} Location "The page"
// @Router   /dashboard [get]
func findDashboard(r *request) error {
	r.Redirect(http.StatusFound, r.under("/dashboard/"))
	return nil
}

// getDashboard is the page that shows operators holders and waiters.
//
// @Summary  Open the dashboard
// @Produce  html
// @Success  200 {string} string "A page that asks no other host for anything"
// @Router   /dashboard/ [get]
func getDashboard(r *request) error {
	r.endpoints.Dashboard.ServePage(r.Writer, r.Request)
	return nil
}

// getDashboardFile is what the page loads.
//
// @Summary  Load a part of the dashboard
// @Produce  text/css,text/javascript,image/svg+xml
// @Param    file path string true "Name of the file"
// @Success  200 {string} string "The file"
// @Failure  404 {object} api.Problem "not_found"
// @Router   /dashboard/assets/{file} [get]
func getDashboardFile(r *request) error {
	if !r.endpoints.Dashboard.ServeAsset(r.Writer, r.Request, r.Param("file")) {
		return nothingHere(r)
	}
	return nil
}
