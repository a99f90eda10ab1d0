//! Charts over time, as SVG.

use plotters::prelude::*;
use std::error::Error;
use std::path::Path;

const SIZE: (u32, u32) = (800, 360);
const COLOURS: [RGBColor; 3] = [RGBColor(0, 114, 178), RGBColor(213, 94, 0), RGBColor(0, 158, 115)];

/// Lines of minutes and values, with axes from 0.
pub struct Chart {
    pub name: &'static str,
    pub title: String,
    pub unit: &'static str,
    pub lines: Vec<(&'static str, Vec<(f64, f64)>)>,
}

pub fn draw(directory: &Path, chart: &Chart) -> Result<(), Box<dyn Error>> {
    let points = || chart.lines.iter().flat_map(|(_, points)| points).filter(|(_, value)| value.is_finite());
    let (last, most) = points().fold((0.1, 1e-9), |(x, y): (f64, f64), point| (x.max(point.0), y.max(point.1)));
    let file = directory.join(format!("{}.svg", chart.name));
    let area = SVGBackend::new(&file, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let mut plane = ChartBuilder::on(&area)
        .caption(&chart.title, ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(80)
        .build_cartesian_2d(0.0..last, 0.0..most * 1.15)?;
    plane
        .configure_mesh()
        .x_desc("minutes")
        .y_desc(chart.unit)
        .x_labels(10)
        .y_labels(6)
        .light_line_style(BLACK.mix(0.05))
        .draw()?;
    for ((name, points), colour) in chart.lines.iter().zip(COLOURS.iter().cycle()) {
        let drawn = points.iter().copied().filter(|(_, value)| value.is_finite());
        plane
            .draw_series(LineSeries::new(drawn, colour.stroke_width(2)))?
            .label(*name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], colour.stroke_width(2)));
    }
    plane
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.9))
        .border_style(BLACK.mix(0.3))
        .draw()?;
    area.present()?;
    Ok(())
}
